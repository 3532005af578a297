#include <array>
#include <string>

#include "dtypes.hpp"
#include "slices.hpp"

namespace gpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

dvt_status run(dvt_device* d, const dvt_call* c) {
  const void *x = dvt::data<void>(c->in[0]), *indices = dvt::data<void>(c->in[1]);
  void* const out = dvt::data<void>(c->out[0]);
  Slices how = plan_slices(c, uint64_t(dvt::size(c->out[0])));
  const uint32_t bytes = widen(how, bytes_of(c->in[0]->dtype), {x, out});
  Fault* const fault = fault_slot(d, c);
  if (!fault) return DVT_OOM;
  return launch(d, c, kernels[size_index(dvt::any(8 * bytes))],
                grid_of_rows(how.n / how.inner.value, how.inner.value), x, indices, out, how, fault);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : sizes) {
    kernels[type_index(type)] = find_kernel(std::string("take_") + type_name(type));
    table.add(dvt::Row("dvt.take", run).in(type).in(dvt::i64).out(type).deterministic());
  }
}
}  // namespace gpu
