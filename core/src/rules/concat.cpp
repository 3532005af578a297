// Rules of ops that join a sequence of arrays: concat on an axis they have, stack on a new one.
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
static int64_t add_sizes(const Inference& inv, int64_t a, uint64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) inv.fail("the result is too large: expected at most 2^58 elements");
  return sum;
}

void shape_concat(Inference& inv) {
  const TensorType& first = inv.operand(0);
  if (!inv.attrs.given(axis_attr(inv))) {
    int64_t total = 0;
    for (int i = 0; i < inv.n_in; ++i) total = add_sizes(inv, total, inv.operand(i).numel);
    inv.work = inv.output(0, {&total, 1}).numel;
    return;
  }
  if (first.rank() == 0) inv.fail("0-d arrays have no axis to join: stack makes one");
  const int axis = single_axis(inv);
  Shape shape(first.shape());
  for (int i = 1; i < inv.n_in; ++i) {
    const TensorType& t = inv.operand(i);
    Shape expected(first.shape());
    if (t.rank() == first.rank()) expected.at[axis] = t.size(axis);
    expect_shape(inv, i, expected, "the first array's but along the axis");
    shape.at[axis] = add_sizes(inv, shape.at[axis], uint64_t(t.size(axis)));
  }
  inv.work = inv.output(0, shape).numel;
}

void shape_stack(Inference& inv) {
  const TensorType& first = inv.operand(0);
  const int a = axis_attr(inv);
  const int at = axis(inv, integer(inv, a), first.rank() + 1);
  set_i64(inv, a, at);
  for (int i = 1; i < inv.n_in; ++i) expect_shape(inv, i, first.shape(), "the first array's");
  Shape shape(first.shape());
  shape.insert(at, inv.n_in);
  inv.work = inv.output(0, shape).numel;
}
}  // namespace dovetail::rules
