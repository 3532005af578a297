#include <array>
#include <string>

#include "dtypes.hpp"
#include "slices.hpp"

namespace gpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

dvt_status run(dvt_device* d, const dvt_call* c) {
  const DLTensor *x = c->in[0], *indices = c->in[1], *out = c->out[0];
  const Slices how = plan_slices(c, uint64_t(dvt::size(out)));
  int64_t of_x[DVT_MAX_NDIM], of_indices[DVT_MAX_NDIM];
  for (int i = 0; i < out->ndim; ++i) {
    of_x[i] = i == how.axis || x->shape[i] == 1 ? 0 : x->strides[i];
    of_indices[i] = indices->shape[i] == 1 ? 0 : indices->strides[i];
  }
  Fault* const fault = fault_slot(d, c);
  if (!fault) return DVT_OOM;
  return launch(d, c, kernels[size_index(x->dtype)], grid_of(how.n), dvt::data<void>(x), dvt::data<void>(indices),
                dvt::data<void>(out), how, x->strides[how.axis], plan_walk(out->ndim, out->shape, of_x, of_indices),
                fault);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : sizes) {
    kernels[type_index(type)] = find_kernel(std::string("take_along_axis_") + type_name(type));
    dvt::Row row("dvt.take_along_axis", run);
    table.add(row.in(type, DVT_O_STRIDED).in(dvt::i64, DVT_O_STRIDED).out(type).deterministic());
  }
}
}  // namespace gpu
