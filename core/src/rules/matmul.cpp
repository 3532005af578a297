// Rules of products of vectors and matrices: matmul, linear, vecdot, outer.
#include <algorithm>

#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
[[gnu::cold, noreturn]] static void no_match(const Inference& inv, const std::string& expected) {
  inv.fail("shapes " + to_string(inv.operand(0).shape()) + " and " + to_string(inv.operand(1).shape()) +
           " do not match: expected " + expected);
}

// "x1's last axis 3 to equal x2's first 4"
[[gnu::cold, noreturn]] static void inner_differ(const Inference& inv, int i, int64_t n, int j, const char* which,
                                                 int64_t m) {
  no_match(inv, operand_name(inv, i) + "'s last axis " + std::to_string(n) + " to equal " + operand_name(inv, j) +
                    "'s " + which + " " + std::to_string(m));
}

[[gnu::cold, noreturn]] static void batch_differ(const Inference& inv) {
  no_match(inv, "the axes before the last two to broadcast");
}

// None is the operands' own dtype, so that rows without the attribute serve both.
static void forget_own_dtype(const Inference& inv) {
  const int at = inv.op.dtype_attr;
  if (at < 0 || !inv.attrs.given(at)) [[likely]]
    return;
  if (inv.result[0] == inv.compute[0]) inv.attrs.at[at] = {DVT_A_NONE, 0, {.raw = 0}};
}

void shape_matmul(Inference& inv) {
  forget_own_dtype(inv);
  const TensorType &a = inv.operand(0), &b = inv.operand(1);
  const int m = a.rank(), n = b.rank();
  if (m == 0 || n == 0) [[unlikely]]
    inv.fail(operand_name(inv, m ? 1 : 0) + " is 0-d: expected at least one axis; multiply() takes scalars");
  const int64_t inner = a.size(m - 1);
  if (const int64_t other = b.size(std::max(n - 2, 0)); inner != other) [[unlikely]]
    inner_differ(inv, 0, inner, 1, n > 2 ? "second last" : "first", other);
  Shape shape;
  if (m > 2 && n > 2) {
    if (!broadcast_shapes(a.shape().first(m - 2), b.shape().first(n - 2), shape.at, &shape.rank)) [[unlikely]]
      batch_differ(inv);
  } else {
    const TensorType& batched = m > 2 ? a : b;
    shape.append(batched, 0, std::max(batched.rank() - 2, 0));
  }
  if (m > 1) shape.push(a.size(m - 2));
  if (n > 1) shape.push(b.size(n - 1));
  inv.work = inv.output(0, shape).numel * uint64_t(inner);
}

void shape_matmul_integer(Inference& inv) {
  enum { x1, x2, x1_zero_point, x2_zero_point };
  for (const int i : {x1, x2}) {
    const DType t = inv.operand(i).dtype;
    if (t != DType::i8 && t != DType::u8)
      inv.fail(ErrorKind::type, operand_name(inv, i) + " is " + info(t).name +
                                    ": expected int8 or uint8; matmul() takes others, dtype= for wider sums");
    const int zero = i + x1_zero_point;
    if (inv.has(zero) && inv.operand(zero).dtype != t)
      inv.fail(ErrorKind::type, operand_name(inv, zero) + " is " + info(inv.operand(zero).dtype).name +
                                    ": expected " + info(t).name + ", the dtype of " + operand_name(inv, i) +
                                    "; astype it");
  }
  shape_matmul(inv);
  const auto expect_one_or = [&](int zero, int operand, int back, const char* each) {
    if (!inv.has(zero) || (inv.operand(zero).numel == 1 && inv.operand(zero).rank() <= 1)) return;
    const TensorType& t = inv.operand(operand);
    if (t.rank() < 2)
      inv.fail(described(inv, zero) + ": expected one value, as " + operand_name(inv, operand) + " is a vector");
    const int64_t n = t.size(t.rank() - back);
    expect_shape(inv, zero, {&n, 1}, each);
  };
  expect_one_or(x1_zero_point, x1, 2, "one value for each row of x1, or one for all");
  expect_one_or(x2_zero_point, x2, 1, "one value for each column of x2, or one for all");
}

// x @ weight.T, plus the bias if one is given.
static void product_of_linear(Inference& inv, int bias) {
  const TensorType &x = inv.operand(0), &weight = inv.operand(1);
  expect_rank(inv, 0, 1);
  expect_rank(inv, 1, 2, 2);
  const int64_t features = x.size(x.rank() - 1);
  if (features != weight.size(1)) [[unlikely]]
    inner_differ(inv, 0, features, 1, "last (weight is (out, in))", weight.size(1));
  if (inv.has(bias)) expect_shape(inv, bias, weight.shape().first(1), "one value for each row of weight");
  Shape shape(x.shape());
  shape.at[x.rank() - 1] = weight.size(0);
  inv.work = inv.output(0, shape).numel * uint64_t(features);
}

void shape_linear(Inference& inv) { product_of_linear(inv, 2); }

static bool is_eight_bits(DType t) { return t == DType::i8 || t == DType::f8e4m3fn || t == DType::f8e5m2; }

void shape_scaled_linear(Inference& inv) {
  enum { x, weight, x_scale, weight_scale, bias };
  for (const int i : {x, weight})
    if (const DType t = inv.operand(i).dtype; !is_eight_bits(t))
      inv.fail(ErrorKind::type, operand_name(inv, i) + " is " + info(t).name +
                                    ": expected int8, float8_e4m3fn or float8_e5m2; linear() takes others");
  if (inv.has(bias) && is_complex(inv.operand(bias).dtype))
    inv.fail(ErrorKind::type, operand_name(inv, bias) + " is complex: expected real numbers");
  product_of_linear(inv, bias);
  const auto expect_factor = [&](int i, std::span<const int64_t> rows, const char* why) {
    const TensorType& t = inv.operand(i);
    const bool keeps_axis = t.rank() > 0 && t.size(t.rank() - 1) == 1;
    if (t.numel == 1 || (keeps_axis && std::ranges::equal(t.shape().first(t.rank() - 1), rows))) return;
    expect_shape(inv, i, rows, why);
  };
  const std::span<const int64_t> shape = inv.operand(x).shape();
  expect_factor(x_scale, shape.first(shape.size() - 1), "one value for each row of x, or one for all");
  expect_factor(weight_scale, inv.operand(weight).shape().first(1),
                "one value for each row of weight, or one for all");
}

// The axis counts from the end of both operands.
void shape_vecdot(Inference& inv) {
  const TensorType &a = inv.operand(0), &b = inv.operand(1);
  const int rank = std::max(a.rank(), b.rank()), shorter = std::min(a.rank(), b.rank());
  const int which = axis_attr(inv);
  const int at = axis(inv, integer(inv, which), rank, a.rank() == rank ? 0 : 1);
  const int back = rank - at;
  if (back > shorter)
    inv.fail(ErrorKind::axis, "axis " + std::to_string(-back) + " is out of range for " +
                                  described(inv, a.rank() == rank ? 1 : 0) + ": expected " +
                                  std::to_string(-shorter) + " to -1");
  const int64_t n = a.size(a.rank() - back), m = b.size(b.rank() - back);
  if (n != m)
    no_match(inv, operand_name(inv, 0) + "'s axis " + std::to_string(-back) + " of " + std::to_string(n) +
                      " to equal " + operand_name(inv, 1) + "'s " + std::to_string(m));
  Shape shape;
  if (!broadcast_shapes(a.shape(), b.shape(), shape.at, &shape.rank)) no_match(inv, "the other axes to broadcast");
  set_i64(inv, which, at);
  std::copy(shape.at + at + 1, shape.at + rank, shape.at + at);
  shape.rank = rank - 1;
  inv.work = inv.output(0, shape).numel * uint64_t(n);
}

void shape_outer(Inference& inv) {
  expect_rank(inv, 0, 1, 1);
  expect_rank(inv, 1, 1, 1);
  const int64_t shape[] = {inv.operand(0).size(0), inv.operand(1).size(0)};
  inv.work = inv.output(0, shape).numel;
}
}  // namespace dovetail::rules
