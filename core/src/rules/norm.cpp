// Rules of normalisations and their gradients: layer_norm (and rms_norm) over the last axes, batch_norm and
// group_norm with axis 1 as channels.
#include <algorithm>

#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::rules {
static double epsilon(DType t) {
  switch (t) {
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    case DType::f64:
    case DType::c128: return 0x1p-52;
    default: return 0x1p-23;
  }
}

static void resolve_eps(Inference& inv) {
  const int a = attr(inv, "eps");
  if (!inv.attrs.given(a)) set_f64(inv, a, epsilon(inv.compute[0]));
  else if (inv.attrs.at[a].kind == DVT_A_I64) set_f64(inv, a, double(inv.attrs.i64(a)));
}

// The last axes of x, which operands from `first` on have as their shape.
static std::span<const int64_t> normalized_axes(Inference& inv, int first) {
  const TensorType& x = inv.operand(0);
  const std::span<const int64_t> last = ints(inv, attr(inv, "normalized_shape"));
  const int n = int(last.size());
  if (n == 0 || n > x.rank() || !std::ranges::equal(x.shape().last(n), last))
    inv.fail("normalized_shape " + to_string(last) + ": expected the last axes of " + described(inv, 0));
  for (int i = first; i < inv.n_in; ++i)
    if (inv.has(i)) expect_shape(inv, i, last, "that of normalized_shape");
  return last;
}

void shape_layer_norm(Inference& inv) {
  normalized_axes(inv, 1);
  resolve_eps(inv);
  inv.work = inv.output(0, inv.operand(0).shape()).numel;
}

// The gradient of some loss by the forward op's result, which has x's shape.
static void expect_grad(const Inference& inv) { expect_shape(inv, 1, inv.operand(0).shape(), "that of x"); }

void shape_layer_norm_grad(Inference& inv) {
  expect_grad(inv);
  const auto last = normalized_axes(inv, 2);
  resolve_eps(inv);
  inv.work = inv.output(0, inv.operand(0).shape()).numel;
  for (uint32_t parameter = 1; parameter < inv.op.spec.n_out; ++parameter) inv.output(int(parameter), last);
}

// From operand `first` on: a value for each channel of x.
static void expect_per_channel(Inference& inv, int first) {
  expect_rank(inv, 0, 2);
  const auto channels = inv.operand(0).shape().subspan(1, 1);
  for (int i = first; i < inv.n_in; ++i)
    if (inv.has(i)) expect_shape(inv, i, channels, "one value for each channel, x's axis 1");
}

void shape_batch_norm(Inference& inv) {
  expect_per_channel(inv, 1);
  resolve_eps(inv);
  inv.work = inv.output(0, inv.operand(0).shape()).numel;
}

void shape_batch_norm_train(Inference& inv) {
  shape_batch_norm(inv);
  for (const int statistic : {1, 2}) inv.output(statistic, inv.operand(0).shape().subspan(1, 1));
}

void shape_batch_norm_train_grad(Inference& inv) {
  expect_per_channel(inv, 2);
  expect_grad(inv);
  resolve_eps(inv);
  inv.work = inv.output(0, inv.operand(0).shape()).numel;
  for (const int parameter : {1, 2}) inv.output(parameter, inv.operand(0).shape().subspan(1, 1));
}

void shape_group_norm(Inference& inv) {
  expect_per_channel(inv, 1);
  const TensorType& x = inv.operand(0);
  if (const int64_t groups = integer(inv, attr(inv, "num_groups"), 1); x.size(1) % groups)
    inv.fail("num_groups: got " + std::to_string(groups) + " for " + described(inv, 0) +
             ", expected a divisor of its " + std::to_string(x.size(1)) + " channels");
  resolve_eps(inv);
  inv.work = inv.output(0, x.shape()).numel;
}
}  // namespace dovetail::rules
