// Elementwise ops of one operand.
#include <ATen/ops/abs_ops.h>
#include <ATen/ops/acos_ops.h>
#include <ATen/ops/acosh_ops.h>
#include <ATen/ops/asin_ops.h>
#include <ATen/ops/asinh_ops.h>
#include <ATen/ops/atan_ops.h>
#include <ATen/ops/atanh_ops.h>
#include <ATen/ops/bitwise_not_ops.h>
#include <ATen/ops/ceil_ops.h>
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/cosh_ops.h>
#include <ATen/ops/elu_ops.h>
#include <ATen/ops/erf_ops.h>
#include <ATen/ops/erfc_ops.h>
#include <ATen/ops/exp2_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/expm1_ops.h>
#include <ATen/ops/floor_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/hardshrink_ops.h>
#include <ATen/ops/hardsigmoid_ops.h>
#include <ATen/ops/hardswish_ops.h>
#include <ATen/ops/hardtanh_ops.h>
#include <ATen/ops/isinf_ops.h>
#include <ATen/ops/isnan_ops.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/log10_ops.h>
#include <ATen/ops/log1p_ops.h>
#include <ATen/ops/log2_ops.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/log_sigmoid_forward_ops.h>
#include <ATen/ops/logical_not_ops.h>
#include <ATen/ops/mish_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/round_ops.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/sgn_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/sign_ops.h>
#include <ATen/ops/signbit_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/sinh_ops.h>
#include <ATen/ops/softplus_ops.h>
#include <ATen/ops/softshrink_ops.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/tan_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/threshold_ops.h>
#include <ATen/ops/trunc_ops.h>

#include "ops/elementwise.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;

// The hottest ones without torch's inference, of floats in row-major order.
template <class Aten, Name name>
Tensor unary_new(const Tensor& x) {
  Tensor r;
  return is_real_float(x) && x.is_contiguous() && Call(op<name>()).in(x).make(r) ? r
                                                                                 : Aten::redispatch(kStructured, x);
}

// Not structured: `out` may have another shape, and any dtype.
Tensor& logical_not_out(const Tensor& x, Tensor& out) {
  fit(out, x.sizes());
  if (out.scalar_type() != at::kBool) {
    Tensor r;
    if (Call(op<"logical_not">()).in(x).make(r)) return store(r, out);
  } else if (Call(op<"logical_not">()).in(x).into(out)) {
    return out;
  }
  return fall_back<aten::logical_not_out>(x, out);
}
Tensor& abs_out(const Tensor& x, Tensor& out) {
  return x.is_complex() ? fall_back<aten::abs_out>(x, out) : unary<aten::abs_out, "abs", Integers::stay>(x, out);
}
Tensor abs(const Tensor& x) {
  Tensor r;
  return !x.is_complex() && Call(op<"abs">()).in(x).make(r) ? r : fall_back<aten::abs>(x);
}

Tensor relu(const Tensor& x) { return predicate<aten::relu, "relu">(x); }
Tensor& relu_(Tensor& x) { return Call(op<"relu">()).in(x).over(x) ? x : fall_back<aten::relu_>(x); }
Tensor& gelu_out(const Tensor& x, c10::string_view approximate, Tensor& out) {
  const char* const how = approximate == "tanh" ? "tanh" : "none";
  if (Call(op<"gelu">()).in(x).set("approximate", how).into(out)) return out;
  return fall_back<aten::gelu_out>(x, approximate, out);
}
Tensor& elu_out(const Tensor& x, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale, Tensor& out) {
  if (is_one(input_scale) && Call(op<"elu">()).in(x).set("alpha", alpha.toDouble()).into(out))
    return is_one(scale) ? out : out.mul_(scale);
  return fall_back<aten::elu_out>(x, alpha, scale, input_scale, out);
}
Tensor& leaky_relu_out(const Tensor& x, const Scalar& slope, Tensor& out) {
  if (Call(op<"leaky_relu">()).in(x).set("negative_slope", slope.toDouble()).into(out)) return out;
  return fall_back<aten::leaky_relu_out>(x, slope, out);
}
Tensor hardswish(const Tensor& x) { return predicate<aten::hardswish, "hardswish">(x); }
Tensor& hardswish_(Tensor& x) { return Call(op<"hardswish">()).in(x).over(x) ? x : fall_back<aten::hardswish_>(x); }
Tensor hardtanh(const Tensor& x, const Scalar& low, const Scalar& high) {
  Tensor r;
  if (is_real_float(x) && Call(op<"clip">()).in(x).number(low).number(high).make(r)) return r;
  return fall_back<aten::hardtanh>(x, low, high);
}
Tensor& softplus_out(const Tensor& x, const Scalar& beta, const Scalar& threshold, Tensor& out) {
  // The op has no threshold: at beta * x = 20, torch's default, both forms are equal in float32.
  const bool default_threshold = threshold.toDouble() == 20 && x.scalar_type() != at::kDouble;
  if (default_threshold && Call(op<"softplus">()).in(x).set("beta", beta.toDouble()).into(out)) return out;
  Tensor r;
  if (is_real_float(x) && Call(op<"softplus">()).in(x).set("beta", beta.toDouble()).make(r))
    return store(select_by(x.mul(beta).gt(threshold), x, r), out);
  return fall_back<aten::softplus_out>(x, beta, threshold, out);
}
Tensor& hardshrink_out(const Tensor& x, const Scalar& lambda, Tensor& out) {
  if (Call(op<"hardshrink">()).in(x).set("lambd", lambda.toDouble()).into(out)) return out;
  return fall_back<aten::hardshrink_out>(x, lambda, out);
}
Tensor& softshrink_out(const Tensor& x, const Scalar& lambda, Tensor& out) {
  if (Call(op<"softshrink">()).in(x).set("lambd", lambda.toDouble()).into(out)) return out;
  return fall_back<aten::softshrink_out>(x, lambda, out);
}
Tensor& threshold_out(const Tensor& x, const Scalar& threshold, const Scalar& value, Tensor& out) {
  if (is_real_float(x) &&
      Call(op<"threshold">()).in(x).set("threshold", threshold.toDouble()).set("value", value.toDouble()).into(out))
    return out;
  return fall_back<aten::threshold_out>(x, threshold, value, out);
}
std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& x) {
  Tensor r;
  if (Call(op<"logsigmoid">()).in(x).make(r)) return {r, empty({0}, x.scalar_type(), x.device().index())};
  return fall_back<aten::log_sigmoid_forward>(x);
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::exp>(m, &unary_new<aten::exp, "exp">);
  implement<aten::log>(m, &unary_new<aten::log, "log">);
  implement<aten::sqrt>(m, &unary_new<aten::sqrt, "sqrt">);
  implement<aten::rsqrt>(m, &unary_new<aten::rsqrt, "rsqrt">);
  implement<aten::tanh>(m, &unary_new<aten::tanh, "tanh">);
  implement<aten::sigmoid>(m, &unary_new<aten::sigmoid, "sigmoid">);
  implement<aten::silu>(m, &unary_new<aten::silu, "silu">);
  implement<aten::neg>(m, &unary_new<aten::neg, "negative">);
  implement<aten::exp_out>(m, &unary<aten::exp_out, "exp">);
  implement<aten::exp2_out>(m, &unary<aten::exp2_out, "exp2">);
  implement<aten::expm1_out>(m, &unary<aten::expm1_out, "expm1">);
  implement<aten::log_out>(m, &unary<aten::log_out, "log">);
  implement<aten::log2_out>(m, &unary<aten::log2_out, "log2">);
  implement<aten::log10_out>(m, &unary<aten::log10_out, "log10">);
  implement<aten::log1p_out>(m, &unary<aten::log1p_out, "log1p">);
  implement<aten::sqrt_out>(m, &unary<aten::sqrt_out, "sqrt">);
  implement<aten::rsqrt_out>(m, &unary<aten::rsqrt_out, "rsqrt">);
  implement<aten::reciprocal_out>(m, &unary<aten::reciprocal_out, "reciprocal">);
  implement<aten::neg_out>(m, &unary<aten::neg_out, "negative", Integers::stay>);
  implement<aten::signbit_out>(m, &unary<aten::signbit_out, "signbit", Integers::stay>);
  implement<aten::ceil_out>(m, &unary<aten::ceil_out, "ceil", Integers::stay>);
  implement<aten::floor_out>(m, &unary<aten::floor_out, "floor", Integers::stay>);
  implement<aten::round_out>(m, &unary<aten::round_out, "round", Integers::stay>);
  implement<aten::trunc_out>(m, &unary<aten::trunc_out, "trunc", Integers::stay>);
  implement<aten::bitwise_not_out>(m, &unary<aten::bitwise_not_out, "bitwise_invert", Integers::stay>);
  implement<aten::sin_out>(m, &unary<aten::sin_out, "sin">);
  implement<aten::cos_out>(m, &unary<aten::cos_out, "cos">);
  implement<aten::tan_out>(m, &unary<aten::tan_out, "tan">);
  implement<aten::asin_out>(m, &unary<aten::asin_out, "asin">);
  implement<aten::acos_out>(m, &unary<aten::acos_out, "acos">);
  implement<aten::atan_out>(m, &unary<aten::atan_out, "atan">);
  implement<aten::sinh_out>(m, &unary<aten::sinh_out, "sinh">);
  implement<aten::cosh_out>(m, &unary<aten::cosh_out, "cosh">);
  implement<aten::tanh_out>(m, &unary<aten::tanh_out, "tanh">);
  implement<aten::asinh_out>(m, &unary<aten::asinh_out, "asinh">);
  implement<aten::acosh_out>(m, &unary<aten::acosh_out, "acosh">);
  implement<aten::atanh_out>(m, &unary<aten::atanh_out, "atanh">);
  implement<aten::erf_out>(m, &unary<aten::erf_out, "erf">);
  implement<aten::erfc_out>(m, &unary<aten::erfc_out, "erfc">);
  implement<aten::sigmoid_out>(m, &unary<aten::sigmoid_out, "sigmoid">);
  implement<aten::silu_out>(m, &unary<aten::silu_out, "silu">);
  implement<aten::mish_out>(m, &unary<aten::mish_out, "mish">);
  implement<aten::hardsigmoid_out>(m, &unary<aten::hardsigmoid_out, "hardsigmoid">);
  implement<aten::logical_not_out>(m, &logical_not_out);
  implement<aten::abs_out>(m, &abs_out);
  implement<aten::abs>(m, &abs);
  implement<aten::isnan>(m, &predicate<aten::isnan, "isnan">);
  implement<aten::isinf>(m, &predicate<aten::isinf, "isinf">);
  implement<aten::relu>(m, &relu);
  implement<aten::relu_>(m, &relu_);
  implement<aten::gelu_out>(m, &gelu_out);
  implement<aten::elu_out>(m, &elu_out);
  implement<aten::leaky_relu_out>(m, &leaky_relu_out);
  implement<aten::hardswish>(m, &hardswish);
  implement<aten::hardswish_>(m, &hardswish_);
  implement<aten::hardtanh>(m, &hardtanh);
  implement<aten::softplus_out>(m, &softplus_out);
  implement<aten::hardshrink_out>(m, &hardshrink_out);
  implement<aten::softshrink_out>(m, &softshrink_out);
  implement<aten::threshold_out>(m, &threshold_out);
  implement<aten::log_sigmoid_forward>(m, &log_sigmoid_forward);
}
}  // namespace dovetail_torch
