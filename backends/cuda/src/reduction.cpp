#include "reduction.hpp"

#include <algorithm>

namespace gpu {
namespace {
struct Plan {
  Lines how;
  bool columns;
};

// Few and long lines are cut into parts, so that there is work for a whole GPU.
void cut_long_lines(Lines& how, bool columns) {
  constexpr uint64_t enough_blocks = 1024, most_parts = 256;
  const uint64_t blocks = columns ? blocks_of_columns(how) : how.count, shortest = columns ? 128 : 4096;
  const uint64_t wanted =
      std::min({how.size / shortest, enough_blocks / std::max<uint64_t>(blocks, 1), most_parts});
  if (wanted > 1) cut(how, wanted);
}

Plan plan(const dvt_call* c) {
  const DLTensor* x = c->in[0];
  const dvt::Attrs attrs(c);
  uint32_t along = 0;
  if (!attrs.given(0)) along = (1u << x->ndim) - 1;
  else if (c->attr[0].kind == DVT_A_I64) along = 1u << attrs.i64(0);
  else
    for (const int64_t axis : attrs.i64s(0)) along |= 1u << axis;
  int64_t strides[DVT_MAX_NDIM], step = 1;  // of the result; along a line they do not matter
  for (int i = x->ndim; i-- > 0;) {
    strides[i] = along >> i & 1 ? x->strides[i] : step;
    if (!(along >> i & 1)) step *= x->shape[i];
  }
  Plan p{plan_lines(x, along, strides), false};
  p.columns = prefer_columns(p.how);
  cut_long_lines(p.how, p.columns);
  return p;
}
}  // namespace

dvt_status run_reduction(dvt_device* d, const dvt_call* c, const ReductionKernels& kernels) {
  auto [how, columns] = plan(c);
  const bool neighbours = how.axis[how.kept + how.along - 1].stride[0] == 1;
  const Grid grid =
      columns ? grid_of_columns(how) : grid_of_lines(how, neighbours ? pack_bytes / bytes_of(c->in[0]->dtype) : 1);
  void* const partial = how.parts.value > 1 ? c->workspace : nullptr;
  void* const out = dvt::data<void>(c->out[0]);
  if (dvt_status s = launch(d, c, columns ? kernels.columns : kernels.lines, grid, dvt::data<void>(c->in[0]),
                            partial, out, how, kernels.variant))
    return s;
  if (how.parts.value == 1) return DVT_OK;
  const uint64_t lines_of_block = block_size / 32;  // by a warp each
  return launch(d, c, kernels.parts, grid_of_blocks((how.count + lines_of_block - 1) / lines_of_block, block_size),
                partial, out, how, kernels.variant);
}

dvt_status query_reduction(const dvt_call* c, dvt_answer* answer, const ReductionKernels& kernels) {
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  const Lines how = plan(c).how;
  if (how.parts.value > 1)
    DVT_PUT(answer, dvt_answer, workspace, how.count * how.parts.value * kernels.value_bytes);
  return DVT_OK;
}
}  // namespace gpu
