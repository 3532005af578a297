#include <array>
#include <string>

#include "gpu/by_type.hpp"
#include "row_grids.hpp"

namespace gpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

dvt_status run(dvt_device* d, const dvt_call* c) {
  const DLTensor *x = c->in[0], *tables = c->in[1];
  const int last = x->ndim - 1, lead = x->ndim - tables->ndim;
  const auto pairs = uint64_t(tables->shape[tables->ndim - 1]);
  int64_t strides[DVT_MAX_NDIM] = {};  // of the tables by the axes of x
  for (int i = lead; i < last; ++i)
    if (tables->shape[i - lead] != 1) strides[i] = tables->strides[i - lead];
  strides[last] = 1;
  ReductionPlan how = plan_rows(x, 1u << last, strides);

  const uint32_t bytes = bytes_of(x->dtype);
  const void *from = dvt::data<void>(x), *cos = dvt::data<void>(tables), *sin = dvt::data<void>(c->in[2]);
  void* const out = dvt::data<void>(c->out[0]);
  const uint32_t packed = pairs * bytes % pack_bytes == 0 && is_packed(how, bytes, {from, cos, sin, out});
  const uint32_t interleaved = dvt::Attrs(c).boolean(0);
  const Grid grid = grid_of_reduction_rows(how, packed ? 2 * pack_bytes / bytes : 2);
  return launch(d, c, kernels[type_index(x->dtype)], grid, from, cos, sin, out, how, pairs, interleaved, packed);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : floats) {
    kernels[type_index(type)] = find_kernel("rotary_embedding", type);
    dvt::Row row("dvt.rotary_embedding", run);
    table.add(row.in(type, DVT_O_STRIDED).in(type).in(type).out(type).deterministic());
  }
}
}  // namespace gpu
