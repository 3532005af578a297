// Rules of ops that work along axes and keep the shape or nearly so, such as flip and roll.
#include <algorithm>

#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
void shape_along_axis(Inference& inv) {
  for (int i = 1; i < inv.n_in; ++i)
    expect_shape(inv, i, inv.operand(0).shape(), "that of " + operand_name(inv, 0));
  single_axis(inv);
  inv.work = inv.output(0, inv.operand(0).shape()).numel;
}

void shape_middle(Inference& inv) {
  expect_rank(inv, 0, 3, 3);
  inv.work = inv.output(0, inv.operand(0).shape()).numel;
}

void shape_top_k(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const int axis = single_axis(inv);
  Shape shape(x.shape());
  shape.at[axis] = integer(inv, attr(inv, "k"), 0);
  if (shape.at[axis] > x.size(axis))
    inv.fail("k: expected 0 to " + std::to_string(x.size(axis)) + ", the elements of " + described(inv, 0) +
             " along axis " + std::to_string(axis) + ", got " + std::to_string(shape.at[axis]));
  const std::string_view mode = inv.attrs.str(attr(inv, "mode"));
  if (mode != "largest" && mode != "smallest")
    inv.fail("mode '" + std::string(mode) + "': expected 'largest' or 'smallest'");
  inv.output(0, shape);
  inv.output(1, shape);
  inv.work = x.numel;
}

void shape_scan(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const int a = axis_attr(inv);
  if (!inv.attrs.given(a)) {
    if (x.rank() != 1) inv.fail("axis is needed for " + described(inv, 0) + ": only a 1-D array has a default");
    set_i64(inv, a, 0);
  }
  const int axis = single_axis(inv);
  Shape shape(x.shape());
  shape.at[axis] += flag(inv, "include_initial");
  inv.work = inv.output(0, shape).numel;
}

void shape_flip(Inference& inv) {
  axes(inv, axis_attr(inv), inv.operand(0).rank());
  inv.work = inv.output(0, inv.operand(0).shape()).numel;
}

void shape_roll(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const int a = axis_attr(inv), s = attr(inv, "shift");
  if (!inv.attrs.given(a)) {
    ints(inv, s, 1, INT64_MIN);
  } else {
    const int n = int(std::max(ints(inv, a).size(), ints(inv, s).size()));
    ints(inv, s, n, INT64_MIN);
    for (int64_t& v : ints(inv, a, n, INT64_MIN)) v = axis(inv, v, x.rank());
  }
  inv.work = inv.output(0, x.shape()).numel;
}

void shape_matrix(Inference& inv) {
  expect_rank(inv, 0, 2);
  inv.work = inv.output(0, inv.operand(0).shape()).numel;
}

void shape_diff(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const int axis = single_axis(inv);
  const int64_t n = integer(inv, attr(inv, "n"), 0);
  Shape shape(x.shape());
  for (int i = 1; i < inv.n_in; ++i) {
    if (!inv.has(i)) continue;
    const TensorType& extra = inv.operand(i);
    if (extra.rank() == 0) {
      shape.at[axis] += 1;
      continue;
    }
    Shape expected(x.shape());
    if (extra.rank() == x.rank()) expected.at[axis] = extra.size(axis);
    expect_shape(inv, i, expected, "x's but along the axis");
    shape.at[axis] += extra.size(axis);
  }
  if (n == 0) shape = Shape(x.shape());  // nothing is joined to x then
  shape.at[axis] -= std::min(n, shape.at[axis]);
  inv.work = inv.output(0, shape).numel;
}
}  // namespace dovetail::rules
