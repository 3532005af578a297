// Rules of slices whose starts are operands: dynamic_slice and dynamic_update_slice.
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
// The axes that the starts (operand i) belong to, in their order.
static std::span<const int64_t> axes_of_starts(Inference& inv, int i) {
  const int a = axis_attr(inv), rank = inv.operand(0).rank();
  if (!inv.attrs.given(a)) {
    axes(inv, a, rank);
  } else {
    uint32_t named = 0;
    for (int64_t& value : ints(inv, a)) {
      value = axis(inv, value, rank);
      if (named >> value & 1)
        inv.fail("axis names axis " + std::to_string(value) + " twice: expected each axis once");
      named |= uint32_t{1} << value;
    }
  }
  const auto named = inv.attrs.i64s(a);
  const TensorType& starts = inv.operand(i);
  if (starts.rank() > 1 || starts.numel != named.size() || (starts.rank() == 0 && !inv.attrs.given(a)))
    inv.fail(described(inv, i) + " do not fit: expected " +
             (named.size() == 1 ? "one start, for axis " + std::to_string(named[0])
                                : "a vector of " + std::to_string(named.size()) + " starts, one per axis"));
  return named;
}

static void check_size(const Inference& inv, int64_t size, int axis) {
  const int64_t most = inv.operand(0).size(axis);
  if (size < 0 || size > most)
    inv.fail("size " + std::to_string(size) + " on axis " + std::to_string(axis) + " of " + described(inv, 0) +
             ": expected 0 to " + std::to_string(most));
}

void shape_dynamic_slice(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const auto named = axes_of_starts(inv, 1);
  const auto sizes = ints(inv, attr(inv, "sizes"));
  if (sizes.size() != named.size())
    inv.fail("sizes has " + std::to_string(sizes.size()) + " ints: expected " + std::to_string(named.size()) +
             ", one per start");
  Shape shape(x.shape());
  for (size_t i = 0; i < sizes.size(); ++i) {
    check_size(inv, sizes[i], int(named[i]));
    shape.at[named[i]] = sizes[i];
  }
  inv.work = inv.output(0, shape).numel;
}

void shape_dynamic_slice_axis(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const int axis = single_axis(inv);
  const int64_t one = 1, size = integer(inv, attr(inv, "size"), 0);
  expect_shape(inv, 1, {&one, 1}, "the start");
  check_size(inv, size, axis);
  Shape shape(x.shape());
  shape.at[axis] = size;
  inv.work = inv.output(0, shape).numel;
}

void shape_dynamic_update_slice(Inference& inv) {
  const TensorType &x = inv.operand(0), &update = inv.operand(1);
  const auto named = axes_of_starts(inv, 2);
  expect_rank(inv, 1, x.rank(), x.rank());
  uint32_t free = 0;
  for (const int64_t a : named) free |= uint32_t{1} << a;
  for (int i = 0; i < x.rank(); ++i)
    if (free >> i & 1 ? update.size(i) > x.size(i) : update.size(i) != x.size(i))
      inv.fail(described(inv, 1) + " does not fit into " + described(inv, 0) + ": expected " +
               (free >> i & 1 ? "at most " : "") + std::to_string(x.size(i)) + " on axis " + std::to_string(i));
  inv.work = inv.output(0, x.shape()).numel;
}
}  // namespace dovetail::rules
