// How kernels over rows see tensors: which axes count the rows and which run along them
// (kernels/common/axes.hpp).
#pragma once
#include <algorithm>

#include "gpu/dtypes.hpp"
#include "kernels/common/axes.hpp"
#include "launch.hpp"

namespace gpu {
// A number that kernels divide by. A backend defines divide_by: some GPUs have no instruction for it.
Divisor64 divide_by(uint64_t);
// Makes each row one part. A backend defines it.
void make_whole(ReductionPlan&);

// Appends an axis to the list of n axes that begins at `first`, or merges it with the last of them if both operands
// step over the two as over one.
inline void append_axis(Axis* first, uint32_t& n, uint64_t size, const int64_t (&stride)[2]) {
  if (size == 1) return;
  if (n) {
    Axis& before = first[n - 1];
    const auto steps = int64_t(size);
    if (before.stride[0] == stride[0] * steps && before.stride[1] == stride[1] * steps) {
      before = {divide_by(value_of(before.size) * size), {stride[0], stride[1]}};
      return;
    }
  }
  first[n++] = {divide_by(size), {stride[0], stride[1]}};
}

// The axes of a shape with the strides of two operands, merged where possible.
inline IterationSpace plan_iteration(int axes, const int64_t* shape, const int64_t* first, const int64_t* second) {
  IterationSpace space{};
  for (int i = 0; i < axes; ++i) append_axis(space.axis, space.axes, uint64_t(shape[i]), {first[i], second[i]});
  return space;
}

// The rows of x over the axes whose bit is set, with the strides of two operands by the axes of x.
inline ReductionPlan plan_rows(const DLTensor* x, uint32_t along, const int64_t* first, const int64_t* second) {
  ReductionPlan how{};
  how.count = how.size = 1;
  Axis single{divide_by(1), {1, 1}};  // of rows of one element
  for (const bool wanted : {false, true}) {
    Axis* const begin = how.axis + how.kept;
    uint32_t& n = wanted ? how.along : how.kept;
    for (int i = 0; i < x->ndim; ++i) {
      if (bool(along >> i & 1) != wanted) continue;
      (wanted ? how.size : how.count) *= uint64_t(x->shape[i]);
      if (wanted) single.stride[0] = first[i], single.stride[1] = second[i];
      append_axis(begin, n, uint64_t(x->shape[i]), {first[i], second[i]});
    }
  }
  if (!how.along) how.axis[how.kept] = single, how.along = 1;
  make_whole(how);
  return how;
}
// Operand 0 is x.
inline ReductionPlan plan_rows(const DLTensor* x, uint32_t along, const int64_t* second) {
  return plan_rows(x, along, x->strides, second);
}

// The rows of a reduction: attribute 0 lists the axes, all of them if it is missing. Operand 1 is the result.
inline ReductionPlan plan_reduction(const dvt_call* c) {
  const DLTensor* x = c->in[0];
  const dvt::Attrs attrs(c);
  uint32_t along = 0;
  if (!attrs.given(0)) along = (1u << x->ndim) - 1;
  else if (c->attr[0].kind == DVT_A_I64) along = 1u << attrs.i64(0);
  else
    for (const int64_t axis : attrs.i64s(0)) along |= 1u << axis;
  int64_t strides[DVT_MAX_NDIM], step = 1;  // along a row the result's do not matter
  for (int i = x->ndim; i-- > 0;) {
    strides[i] = along >> i & 1 ? x->strides[i] : step;
    if (!(along >> i & 1)) step *= x->shape[i];
  }
  return plan_rows(x, along, strides);
}

// Should contiguous work items take different rows, instead of one row? If so, the last kept axis becomes the one
// along which these rows are contiguous.
inline bool prefer_columns(ReductionPlan& how) {
  constexpr uint64_t few = 16;
  Axis *const begin = how.axis, *const end = begin + how.kept;
  const auto is_contiguous = [](const Axis& a) { return a.stride[0] == 1 && value_of(a.size) >= few; };
  const auto is_shorter = [](const Axis& a, const Axis& b) { return value_of(a.size) < value_of(b.size); };
  Axis* best = std::find_if(begin, end, is_contiguous);
  if (best == end) best = std::max_element(begin, end, is_shorter);
  if (best == end || value_of(best->size) < few) return false;
  const bool rows = end[how.along - 1].stride[0] == 1;
  if (how.size > few && (rows || best->stride[0] != 1)) return false;
  if (short_rows_share_blocks && rows && best->stride[0] != 1) return false;
  std::rotate(best, best + 1, end);
  return true;
}

struct PlannedReduction {
  ReductionPlan how;
  bool columns;
};

// The answer of a kernel over rows whose parts leave one value each in the workspace.
inline dvt_status query_parts(dvt_device* d, const dvt_call* c, dvt_answer* answer, const ReductionPlan& how,
                              uint32_t value_bytes) {
  if (const dvt_status s = query_type(d, c->in[0]->dtype, answer)) return s;
  const uint64_t parts = value_of(how.parts);
  if (parts > 1) DVT_PUT(answer, dvt_answer, workspace, how.count * parts * value_bytes);
  return DVT_OK;
}
}  // namespace gpu
