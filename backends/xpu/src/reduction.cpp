#include "reduction.hpp"

#include <algorithm>

namespace xpu {
namespace {
struct Plan {
  Lines how;
  bool columns;
};

// Few and long lines are cut into parts, so that there is work for a whole GPU.
uint64_t parts_of(const Lines& how, bool columns) {
  constexpr uint64_t enough_groups = 512, most_parts = 256;
  const uint64_t groups = 1 + (columns ? how.count / 64 : how.count), shortest = columns ? 64 : 4096;
  const uint64_t wanted = std::min({how.size / shortest, enough_groups / groups, most_parts});
  return std::max<uint64_t>(wanted, 1);
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
  p.how.parts = parts_of(p.how, p.columns);
  return p;
}
}  // namespace

dvt_status run_reduction(dvt_device* d, const dvt_call* c, const ReductionKernels& kernels) {
  const auto [how, columns] = plan(c);
  const uint64_t part = how.size / how.parts;
  const Range range = columns ? range_of_columns(how) : range_of_groups(how.count * how.parts, part);
  void* const partial = how.parts > 1 ? c->workspace : nullptr;
  void* const out = dvt::data<void>(c->out[0]);
  if (dvt_status s = launch(d, c, columns ? kernels.columns : kernels.lines, range, dvt::data<void>(c->in[0]),
                            partial, out, how))
    return s;
  if (how.parts == 1) return DVT_OK;
  return launch(d, c, kernels.parts, range_of_groups(how.count, how.parts), partial, out, how);
}

dvt_status query_reduction(dvt_device* d, const dvt_call* c, dvt_answer* answer, const ReductionKernels& kernels) {
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  if (const dvt_status s = dvt::same(c->in[0]->dtype, dvt::f64) ? query_fp64(d, c, answer) : DVT_OK) return s;
  const Lines how = plan(c).how;
  if (how.parts > 1) DVT_PUT(answer, dvt_answer, workspace, how.count * how.parts * kernels.value_bytes);
  return DVT_OK;
}
}  // namespace xpu
