// Rules of reductions: reduce over any axes, arg_reduce over one or all.
#include "rules/rules.hpp"

namespace dovetail::rules {
// The maximum of no elements has no value. Sums and products, float statistics (mean: NaN), counts and predicates
// have one.
[[gnu::cold, noreturn]] static void nothing_to_reduce(const Inference& inv) {
  inv.fail("zero-size reduction: " + described(inv, 0) +
           " is empty along the reduced axes, and the op has no identity");
}

static bool has_identity(const Inference& inv) { return inv.op.spec.dtype != "same"; }

static bool keepdims(const Inference& inv) {
  const int i = inv.op.keepdims_attr;
  return i >= 0 && inv.attrs.boolean(i);
}

void shape_reduce(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const uint32_t reduced = axes(inv, axis_attr(inv), x.rank());
  const bool keep = keepdims(inv);
  Shape shape;
  bool empty = false;  // as in NumPy an error also where the result has no elements
  for (int i = 0; i < x.rank(); ++i) {
    const bool here = reduced >> i & 1;
    if (!here || keep) shape.push(here ? 1 : x.size(i));
    empty |= here && x.size(i) == 0;
  }
  if (empty && !has_identity(inv)) [[unlikely]]
    nothing_to_reduce(inv);
  inv.output(0, shape);
  inv.work = x.numel;
}

void shape_reduce_middle(Inference& inv) {
  expect_rank(inv, 0, 3, 3);
  const TensorType& x = inv.operand(0);
  const int64_t shape[] = {x.size(0), x.size(2)};
  inv.output(0, shape);
  inv.work = x.numel;
}

void shape_arg_reduce(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const bool all = !inv.attrs.given(axis_attr(inv));
  const int axis = all ? -1 : single_axis(inv);
  const bool keep = keepdims(inv);
  Shape shape;
  bool empty = false;
  for (int i = 0; i < x.rank(); ++i) {
    const bool here = all || i == axis;
    if (!here || keep) shape.push(here ? 1 : x.size(i));
    empty |= here && x.size(i) == 0;
  }
  if (empty) [[unlikely]]
    nothing_to_reduce(inv);
  inv.output(0, shape);
  inv.work = x.numel;
}
}  // namespace dovetail::rules
