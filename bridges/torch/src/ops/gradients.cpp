// Gradients of elementwise ops and of softmax.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/elu_backward_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/hardshrink_backward_ops.h>
#include <ATen/ops/hardsigmoid_backward_ops.h>
#include <ATen/ops/hardswish_backward_ops.h>
#include <ATen/ops/hardtanh_backward_ops.h>
#include <ATen/ops/leaky_relu_backward_ops.h>
#include <ATen/ops/log_sigmoid_backward_ops.h>
#include <ATen/ops/logit_backward_ops.h>
#include <ATen/ops/mish_backward_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/softplus_backward_ops.h>
#include <ATen/ops/softshrink_backward_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/threshold_backward_ops.h>

#include <limits>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;

bool plain(const Tensor& grad, const Tensor& x) {
  return is_real_float(x) && grad.scalar_type() == x.scalar_type();
}
// 0 where the mask is true, else grad: also at NaN, where comparisons are false.
bool masked(const Tensor& grad, const Tensor& mask, const Tensor& out) {
  return Call(op<"where">()).in(mask).number(Scalar(0)).in(grad).into(out);
}

Tensor threshold_backward(const Tensor& grad, const Tensor& x, const Scalar& threshold) {
  Tensor low, r;
  if (plain(grad, x) && grad.sizes() == x.sizes() && grad.is_contiguous() && x.is_contiguous() &&
      Call(op<"less_equal">()).in(x).number(threshold).make(low) &&
      Call(op<"where">()).in(low).number(Scalar(0)).in(grad).make(r))
    return r;
  return aten::threshold_backward::redispatch(kStructured, grad, x, threshold);
}
Tensor& threshold_backward_out(const Tensor& grad, const Tensor& x, const Scalar& threshold, Tensor& out) {
  Tensor low;
  if (plain(grad, x) && Call(op<"less_equal">()).in(x).number(threshold).make(low) && masked(grad, low, out))
    return out;
  return fall_back<aten::threshold_backward_grad_input>(grad, x, threshold, out);
}
Tensor& hardtanh_backward_out(const Tensor& grad, const Tensor& x, const Scalar& low, const Scalar& high,
                              Tensor& out) {
  fit(out, x.sizes());
  if (plain(grad, x) && masked(grad, x.le(low).logical_or(x.ge(high)), out)) return out;
  return fall_back<aten::hardtanh_backward_grad_input>(grad, x, low, high, out);
}
Tensor hardtanh_backward(const Tensor& grad, const Tensor& x, const Scalar& low, const Scalar& high) {
  Tensor out = empty(x.sizes(), x.scalar_type(), x.device().index());
  return hardtanh_backward_out(grad, x, low, high, out);
}
template <class Aten>
Tensor& shrink_backward_out(const Tensor& grad, const Tensor& x, const Scalar& lambda, Tensor& out) {
  if (plain(grad, x) && masked(grad, x.abs().le(lambda), out)) return out;
  return fall_back<Aten>(grad, x, lambda, out);
}
Tensor& leaky_relu_backward_out(const Tensor& grad, const Tensor& x, const Scalar& slope, bool is_result,
                                Tensor& out) {
  if (plain(grad, x) && Call(op<"where">()).in(x.gt(0)).in(grad).in(grad * slope).into(out)) return out;
  return fall_back<aten::leaky_relu_backward_grad_input>(grad, x, slope, is_result, out);
}
Tensor& elu_backward_out(const Tensor& grad, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
                         bool is_result, const Tensor& x, Tensor& out) {
  if (!plain(grad, x))
    return fall_back<aten::elu_backward_grad_input>(grad, alpha, scale, input_scale, is_result, x, out);
  const double a = alpha.toDouble() * scale.toDouble(), k = input_scale.toDouble();
  const Tensor negative = is_result ? (x + a) * k : (x * k).exp() * (a * k);
  return store(select_by(x.le(0), grad * negative, grad * scale), out);
}
Tensor& hardsigmoid_backward_out(const Tensor& grad, const Tensor& x, Tensor& out) {
  if (plain(grad, x) && masked(grad * (1. / 6), x.gt(-3).logical_and(x.lt(3)).logical_not(), out)) return out;
  return fall_back<aten::hardsigmoid_backward_grad_input>(grad, x, out);
}
Tensor hardswish_backward(const Tensor& grad, const Tensor& x) {
  if (!plain(grad, x)) return fall_back<aten::hardswish_backward>(grad, x);
  const Tensor inside = grad * (x * (1. / 3) + 0.5), zero = grad * 0;
  return select_by(x.le(-3), zero, select_by(x.lt(3), inside, grad));
}
Tensor& tanh_backward_out(const Tensor& grad, const Tensor& y, Tensor& out) {
  if (!plain(grad, y)) return fall_back<aten::tanh_backward_grad_input>(grad, y, out);
  return store(grad * (1 - y * y), out);
}
Tensor& sigmoid_backward_out(const Tensor& grad, const Tensor& y, Tensor& out) {
  if (!plain(grad, y)) return fall_back<aten::sigmoid_backward_grad_input>(grad, y, out);
  return store(grad * (1 - y) * y, out);
}
Tensor& silu_backward_out(const Tensor& grad, const Tensor& x, Tensor& out) {
  if (plain(grad, x) && Call(op<"silu_grad">()).in(x).in(grad).into(out)) return out;
  return fall_back<aten::silu_backward_grad_input>(grad, x, out);
}
Tensor& gelu_backward_out(const Tensor& grad, const Tensor& x, c10::string_view approximate, Tensor& out) {
  const char* const how = approximate == "tanh" ? "tanh" : "none";
  if (plain(grad, x) && Call(op<"gelu_grad">()).in(x).in(grad).set("approximate", how).into(out)) return out;
  return fall_back<aten::gelu_backward_grad_input>(grad, x, approximate, out);
}
Tensor mish_backward(const Tensor& grad, const Tensor& x) {
  if (!plain(grad, x)) return fall_back<aten::mish_backward>(grad, x);
  Tensor softplus;
  if (!Call(op<"softplus">()).in(x).make(softplus)) return fall_back<aten::mish_backward>(grad, x);
  const Tensor t = softplus.tanh();
  return grad * (t + x * x.sigmoid() * (1 - t * t));
}
Tensor& softplus_backward_out(const Tensor& grad, const Tensor& x, const Scalar& beta, const Scalar& threshold,
                              Tensor& out) {
  if (!plain(grad, x)) return fall_back<aten::softplus_backward_grad_input>(grad, x, beta, threshold, out);
  const Tensor z = x * beta;
  return store(select_by(z.gt(threshold), grad, grad * z.sigmoid()), out);
}
Tensor log_sigmoid_backward(const Tensor& grad, const Tensor& x, const Tensor& buffer) {
  if (!plain(grad, x)) return fall_back<aten::log_sigmoid_backward>(grad, x, buffer);
  return grad * x.neg().sigmoid();
}
Tensor& logit_backward_out(const Tensor& grad, const Tensor& x, std::optional<double> eps, Tensor& out) {
  if (!plain(grad, x)) return fall_back<aten::logit_backward_grad_input>(grad, x, eps, out);
  const double low = eps ? *eps : 0, high = 1 - low;
  const Tensor inside = grad / (x * (1 - x));
  const Tensor outside = eps ? grad * 0 : grad * std::numeric_limits<double>::quiet_NaN();
  return store(select_by(x.ge(low).logical_and(x.le(high)), inside, outside), out);
}

template <class Aten, Name name>
Tensor& softmax_backward_out(const Tensor& grad, const Tensor& y, int64_t dim, at::ScalarType dtype, Tensor& out) {
  if (y.dim() && y.numel() && plain(grad, y) && out.scalar_type() == y.scalar_type() &&
      Call(op<name>()).in(y).in(grad).set("axis", at::maybe_wrap_dim(dim, y.dim())).into(out))
    return out;
  return fall_back<Aten>(grad, y, dim, dtype, out);
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::threshold_backward>(m, &threshold_backward);
  implement<aten::threshold_backward_grad_input>(m, &threshold_backward_out);
  implement<aten::hardtanh_backward_grad_input>(m, &hardtanh_backward_out);
  implement<aten::hardtanh_backward>(m, &hardtanh_backward);
  implement<aten::hardshrink_backward_grad_input>(m, &shrink_backward_out<aten::hardshrink_backward_grad_input>);
  implement<aten::softshrink_backward_grad_input>(m, &shrink_backward_out<aten::softshrink_backward_grad_input>);
  implement<aten::leaky_relu_backward_grad_input>(m, &leaky_relu_backward_out);
  implement<aten::elu_backward_grad_input>(m, &elu_backward_out);
  implement<aten::hardsigmoid_backward_grad_input>(m, &hardsigmoid_backward_out);
  implement<aten::hardswish_backward>(m, &hardswish_backward);
  implement<aten::tanh_backward_grad_input>(m, &tanh_backward_out);
  implement<aten::sigmoid_backward_grad_input>(m, &sigmoid_backward_out);
  implement<aten::silu_backward_grad_input>(m, &silu_backward_out);
  implement<aten::gelu_backward_grad_input>(m, &gelu_backward_out);
  implement<aten::mish_backward>(m, &mish_backward);
  implement<aten::softplus_backward_grad_input>(m, &softplus_backward_out);
  implement<aten::log_sigmoid_backward>(m, &log_sigmoid_backward);
  implement<aten::logit_backward_grad_input>(m, &logit_backward_out);
  implement<aten::_softmax_backward_data_out>(
      m, &softmax_backward_out<aten::_softmax_backward_data_out, "softmax_grad">);
  implement<aten::_log_softmax_backward_data_out>(
      m, &softmax_backward_out<aten::_log_softmax_backward_data_out, "log_softmax_grad">);
}
}  // namespace dovetail_torch
