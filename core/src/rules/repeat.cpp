// Rules of ops that enlarge an array: repeat, tile, pad.
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
[[gnu::cold, noreturn]] static void too_large(const Inference& inv, int axis) {
  inv.fail("the result's axis " + std::to_string(axis) + " is too large: expected at most 2^58 elements");
}

static int64_t times(const Inference& inv, int64_t a, int64_t b, int axis) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) too_large(inv, axis);
  return product;
}

static int64_t plus(const Inference& inv, int64_t a, int64_t b, int axis) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) too_large(inv, axis);
  return sum;
}

void shape_repeat(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const int64_t n = integer(inv, attr(inv, "repeats"), 0);
  Shape shape;
  if (inv.attrs.given(axis_attr(inv))) {
    const int axis = single_axis(inv);
    shape.append(x.shape());
    shape.at[axis] = times(inv, shape.at[axis], n, axis);
  } else {
    shape.push(times(inv, int64_t(x.numel), n, 0));
  }
  inv.work = inv.output(0, shape).numel;
}

void shape_tile(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const int a = attr(inv, "repetitions");
  std::span<const int64_t> given = ints(inv, a);
  if (given.size() > DVT_MAX_NDIM)
    inv.fail("repetitions has " + std::to_string(given.size()) + " values: expected at most " +
             std::to_string(DVT_MAX_NDIM));
  Shape repetitions(given), shape(x.shape());
  while (repetitions.rank < x.rank()) repetitions.insert(0, 1);
  while (shape.rank < repetitions.rank) shape.insert(0, 1);
  if (repetitions.rank != int(given.size())) inv.attrs.set_ints(a, repetitions);
  ints(inv, a, repetitions.rank, 0);
  for (int i = 0; i < shape.rank; ++i) shape.at[i] = times(inv, shape.at[i], repetitions.at[i], i);
  inv.work = inv.output(0, shape).numel;
}

void shape_pad(Inference& inv) {
  const TensorType& x = inv.operand(0);
  const int a = attr(inv, "pad_width"), rank = x.rank();
  const std::span<const int64_t> given = ints(inv, a);
  if (given.size() == 2 && rank > 1) {
    int64_t pairs[2 * DVT_MAX_NDIM];
    for (int i = 0; i < 2 * rank; ++i) pairs[i] = given[i % 2];
    inv.attrs.set_ints(a, {pairs, size_t(2 * rank)});
  } else if (given.size() > 1 && given.size() != size_t(2 * rank)) {
    inv.fail("pad_width " + to_string(given) + ": expected 1, 2 or " + std::to_string(2 * rank) +
             " ints (before and after for each axis) for " + described(inv, 0));
  }
  const std::span<const int64_t> widths = ints(inv, a, 2 * rank, 0);
  Shape shape(x.shape());
  for (int i = 0; i < rank; ++i)
    for (int side = 0; side < 2; ++side) shape.at[i] = plus(inv, shape.at[i], widths[2 * i + side], i);
  inv.work = inv.output(0, shape).numel;
}
}  // namespace dovetail::rules
