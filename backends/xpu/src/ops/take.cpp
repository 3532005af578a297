#include <array>
#include <string>

#include "dtypes.hpp"
#include "kernels/common/slices.hpp"
#include "launch.hpp"

namespace xpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

dvt_status run(dvt_device* d, const dvt_call* c) {
  const DLTensor *x = c->in[0], *indices = c->in[1], *out = c->out[0];
  Slices how{};
  how.n = uint64_t(dvt::size(out)), how.count = uint64_t(dvt::size(indices)), how.inner = 1;
  how.axis = dvt::Attrs(c).i64(0), how.size = x->shape[how.axis], how.call = c->correlation_id;
  for (int64_t axis = how.axis + 1; axis < x->ndim; ++axis) how.inner *= uint64_t(x->shape[axis]);
  Fault* const fault = fault_slot(d, c);
  if (!fault) return DVT_OOM;
  return launch(d, c, kernels[size_index(x->dtype)], range_of(how.n / how.inner, how.inner), dvt::data<void>(x),
                dvt::data<void>(indices), dvt::data<void>(out), how, fault);
}
}  // namespace

void XPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : sizes) {
    kernels[type_index(type)] = find_kernel(std::string("take_") + type_name(type));
    table.add(dvt::Row("dvt.take", run).in(type).in(dvt::i64).out(type).deterministic());
  }
}
}  // namespace xpu
