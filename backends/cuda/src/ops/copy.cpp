#include <algorithm>
#include <optional>

#include "gpu/elementwise.hpp"
#include "kernels/common/axes.hpp"
#include "row_grids.hpp"

namespace gpu {
namespace {
constinit std::array<ElementwiseKernels, type_count> kernels{};
constinit std::array<KernelId, type_count> transposes{};

// Plans a transposing copy if x and out are contiguous along two different axes of more than a few elements.
// Operand 0 is x.
std::optional<Transpose> plan_transpose(const DLTensor* x, const DLTensor* out) {
  constexpr uint64_t few = 16;
  if (x->ndim != out->ndim) return {};
  const IterationSpace all = plan_iteration(out->ndim, out->shape, x->strides, out->strides);
  const Axis* axis[2];  // along which either operand is contiguous
  for (const int k : {0, 1}) {
    axis[k] = std::find_if(all.axis, all.axis + all.axes,
                           [&](const Axis& a) { return a.stride[k] == 1 && a.size.value >= few; });
    if (axis[k] == all.axis + all.axes) return {};
  }
  if (axis[0] == axis[1]) return {};
  Transpose how{};
  const auto edge = uint64_t(tile_edge(int(bytes_of(out->dtype))));
  how.tiles = 1;
  for (const int k : {0, 1}) {
    how.size[k] = axis[k]->size.value;
    how.along[k] = divide_by((how.size[k] + edge - 1) / edge);
    how.tiles *= how.along[k].value;
  }
  how.from = axis[1]->stride[0], how.to = axis[0]->stride[1];
  for (const Axis* a = all.axis; a != all.axis + all.axes; ++a)
    if (a != axis[0] && a != axis[1]) how.others.axis[how.others.axes++] = *a, how.tiles *= a->size.value;
  return how;
}

dvt_status run(dvt_device* d, const dvt_call* c) {
  const DLTensor *x = c->in[0], *out = c->out[0];
  const auto how = plan_transpose(x, out);
  if (!how) return run_elementwise(d, c, kernels[size_index(out->dtype)]);
  return launch(d, c, transposes[size_index(out->dtype)], grid_of_blocks(how->tiles, block_size),
                dvt::data<void>(x), dvt::data<void>(out), *how);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : sizes) {
    kernels[size_index(type)] = find_elementwise("copy", type);
    transposes[size_index(type)] = find_kernel("transpose", type);
    table.add(dvt::Row("dvt.copy", run).in(type, any_operand).out(type, DVT_O_STRIDED).deterministic());
  }
}
}  // namespace gpu
