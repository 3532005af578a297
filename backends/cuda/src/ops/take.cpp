#include <array>
#include <string>

#include "dtypes.hpp"
#include "slices.hpp"

namespace gpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

dvt_status run(dvt_device* d, const dvt_call* c, const DLTensor* from, const DLTensor* at, int64_t axis) {
  const void *x = dvt::data<void>(from), *indices = dvt::data<void>(at);
  void* const out = dvt::data<void>(c->out[0]);
  Slices how = plan_slices(c, from, at, axis, uint64_t(dvt::size(c->out[0])));
  const uint32_t bytes = widen(how, bytes_of(from->dtype), {x, out});
  Fault* const fault = fault_slot(d, c);
  if (!fault) return DVT_OOM;
  return launch(d, c, kernels[size_index(dvt::any(8 * bytes))],
                grid_of_rows(how.n / how.inner.value, how.inner.value), x, indices, out, how, fault);
}
dvt_status take(dvt_device* d, const dvt_call* c) { return run(d, c, c->in[0], c->in[1], dvt::Attrs(c).i64(0)); }
dvt_status embedding(dvt_device* d, const dvt_call* c) { return run(d, c, c->in[1], c->in[0], 0); }
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : sizes) {
    kernels[type_index(type)] = find_kernel(std::string("take_") + type_name(type));
    table.add(dvt::Row("dvt.take", take).in(type).in(dvt::i64).out(type).deterministic());
    table.add(dvt::Row("dvt.embedding", embedding).in(dvt::i64).in(type).out(type).deterministic());
  }
}
}  // namespace gpu
