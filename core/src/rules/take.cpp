// Rules of gathering and scattering by index: take, take_along_axis, scatter,
// put_along_axis, segment_sum, embedding, one_hot.
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
// Every index into an empty axis is out of range: the rule reports it before a kernel runs.
static void expect_something(const Inference& inv, int i, int axis, const TensorType& indices) {
  if (inv.operand(i).size(axis) == 0 && indices.numel != 0) [[unlikely]]
    inv.fail(ErrorKind::index, "indices into axis " + std::to_string(axis) + " of size 0: " + described(inv, i) +
                                   " has no elements to take there");
}

void shape_take(Inference& inv) {
  const TensorType &x = inv.operand(0), &indices = inv.operand(1);
  const int a = axis_attr(inv);
  if (!inv.attrs.given(a)) {
    if (x.rank() != 1) inv.fail("axis is needed for " + described(inv, 0) + ": only a 1-D array has a default");
    set_i64(inv, a, 0);
  }
  const int axis = single_axis(inv);
  expect_something(inv, 0, axis, indices);
  Shape shape;
  shape.append(x, 0, axis);
  shape.append(indices.shape());
  shape.append(x, axis + 1, x.rank());
  inv.work = inv.output(0, shape).numel;
}

void shape_take_along_axis(Inference& inv) {
  const TensorType &x = inv.operand(0), &indices = inv.operand(1);
  const int axis = single_axis(inv);
  expect_rank(inv, 1, x.rank(), x.rank());
  Shape shape(indices.shape());
  for (int i = 0; i < x.rank(); ++i) {
    if (i == axis || x.size(i) == indices.size(i)) continue;
    if (x.size(i) != 1 && indices.size(i) != 1)
      inv.fail("shapes " + to_string(x.shape()) + " and " + to_string(indices.shape()) + " do not match on axis " +
               std::to_string(i) + ": expected equal sizes or 1 on every axis but " + std::to_string(axis));
    if (indices.size(i) == 1) shape.at[i] = x.size(i);
  }
  expect_something(inv, 0, axis, indices);
  inv.work = inv.output(0, shape).numel;
}

// The attribute came with version 2: an op made at run time may lack it.
static void check_mode(const Inference& inv) {
  const int a = find_attr(inv, "mode");
  if (a < 0) return;
  const std::string_view mode = inv.attrs.str(a);
  for (const std::string_view known : {"set", "add", "max", "min", "multiply"})
    if (mode == known) return;
  inv.fail("mode: expected 'set', 'add', 'max', 'min' or 'multiply', got '" + std::string(mode) + "'");
}

static void scatter_along(Inference& inv, int axis) {
  const TensorType &x = inv.operand(0), &indices = inv.operand(1), &updates = inv.operand(2);
  check_mode(inv);
  expect_rank(inv, 1, 1, 1);
  expect_something(inv, 0, axis, indices);
  Shape region(x.shape());
  region.at[axis] = indices.size(0);
  if (!broadcasts_to(updates.shape(), region))
    inv.fail(described(inv, 2) + " do not broadcast to the " + std::to_string(indices.size(0)) + " slices of " +
             described(inv, 0) + " on axis " + std::to_string(axis) + ": expected " + to_string(region));
  inv.output(0, x.shape());
  inv.work = x.numel + updates.numel;
}

void shape_scatter(Inference& inv) { scatter_along(inv, single_axis(inv)); }

void shape_scatter_middle(Inference& inv) {
  expect_rank(inv, 0, 3, 3);
  scatter_along(inv, 1);
}

void shape_put_along_axis(Inference& inv) {
  const TensorType &x = inv.operand(0), &indices = inv.operand(1), &values = inv.operand(2);
  const int axis = single_axis(inv);
  check_mode(inv);
  expect_rank(inv, 1, x.rank(), x.rank());
  Shape region(x.shape());
  region.at[axis] = indices.size(axis);
  if (!broadcasts_to(indices.shape(), region))
    inv.fail("shapes " + to_string(x.shape()) + " and " + to_string(indices.shape()) +
             " do not match: expected x's sizes or 1 on every axis of indices but " + std::to_string(axis));
  if (!broadcasts_to(values.shape(), region))
    inv.fail(described(inv, 2) + " do not broadcast to the places of indices: expected " + to_string(region));
  expect_something(inv, 0, axis, indices);
  inv.output(0, x.shape());
  inv.work = x.numel + indices.numel;
}

void shape_segment_sum(Inference& inv) {
  expect_rank(inv, 0, 1);
  const TensorType& x = inv.operand(0);
  const int64_t rows = x.size(0);
  expect_shape(inv, 1, {&rows, 1}, "one id for each slice of x's first axis");
  Shape shape;
  shape.push(integer(inv, attr(inv, "num_segments"), 0));
  shape.append(x, 1, x.rank());
  inv.work = inv.output(0, shape).numel + x.numel;
}

void shape_embedding(Inference& inv) {
  const TensorType &indices = inv.operand(0), &weight = inv.operand(1);
  expect_rank(inv, 1, 2, 2);
  expect_something(inv, 1, 0, indices);
  Shape shape(indices.shape());
  shape.push(weight.size(1));
  inv.work = inv.output(0, shape).numel;
}

void shape_one_hot(Inference& inv) {
  Shape shape(inv.operand(0).shape());
  shape.push(integer(inv, attr(inv, "num_classes"), 1));
  inv.work = inv.output(0, shape).numel;
}
}  // namespace dovetail::rules
