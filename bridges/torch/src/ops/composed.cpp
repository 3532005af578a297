// Elementwise ops that are composed of others.
#include <ATen/ScalarOps.h>
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/floor_divide_ops.h>
#include <ATen/ops/fmax_ops.h>
#include <ATen/ops/fmin_ops.h>
#include <ATen/ops/fmod_ops.h>
#include <ATen/ops/frac_ops.h>
#include <ATen/ops/heaviside_ops.h>
#include <ATen/ops/isneginf_ops.h>
#include <ATen/ops/isposinf_ops.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/ops/logaddexp2_ops.h>
#include <ATen/ops/logit_ops.h>
#include <ATen/ops/nan_to_num_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/round_ops.h>
#include <ATen/ops/sgn_ops.h>
#include <ATen/ops/sign_ops.h>
#include <ATen/ops/sinc_ops.h>
#include <ATen/ops/special_xlog1py_ops.h>
#include <ATen/ops/xlogy_ops.h>

#include <cmath>
#include <limits>

#include "ops/elementwise.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ---- of optimisers; integers are torch's
Tensor& addcmul_out(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value, Tensor& out) {
  if (!is_real_float(out)) return fall_back<aten::addcmul_out>(x, a, b, value, out);
  const Tensor product = a.to(out.scalar_type()) * b.to(out.scalar_type());
  if (Call(op<"add">())
          .in(x, out.scalar_type())
          .in(is_one(value) ? product : product * value, out.scalar_type())
          .into(out))
    return out;
  return fall_back<aten::addcmul_out>(x, a, b, value, out);
}
Tensor& addcdiv_out(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value, Tensor& out) {
  if (!is_real_float(out) || c10::isIntegralType(a.scalar_type(), true))
    return fall_back<aten::addcdiv_out>(x, a, b, value, out);
  const Tensor quotient = is_one(value) ? a / b : a * value / b;
  if (Call(op<"add">()).in(x, out.scalar_type()).in(quotient, out.scalar_type()).into(out)) return out;
  return fall_back<aten::addcdiv_out>(x, a, b, value, out);
}
// From the nearer end, so that both ends are exact.
Tensor& lerp_scalar_out(const Tensor& x, const Tensor& y, const Scalar& weight, Tensor& out) {
  if (!is_real_float(out)) return fall_back<aten::lerp_Scalar_out>(x, y, weight, out);
  const double w = weight.toDouble();
  const Tensor way = y - x;
  if (Call(op<"add">()).in(std::abs(w) < 0.5 ? x : y).in(way * (std::abs(w) < 0.5 ? w : w - 1)).into(out))
    return out;
  return fall_back<aten::lerp_Scalar_out>(x, y, weight, out);
}
Tensor& lerp_tensor_out(const Tensor& x, const Tensor& y, const Tensor& weight, Tensor& out) {
  if (!is_real_float(out)) return fall_back<aten::lerp_Tensor_out>(x, y, weight, out);
  const Tensor way = y - x;
  return store(select_by(weight.abs().lt(0.5), x + way * weight, y + way * (weight - 1)), out);
}

// ---- division
// As Python's: from the remainder, which is exact. floor(a / b) is one more where the quotient rounds up to it.
Tensor floor_of_floats(const Tensor& a, const Tensor& b, at::ScalarType as) {
  const auto exact = as == at::kDouble ? at::kDouble : at::kFloat;
  const Tensor x = a.to(exact), y = b.to(exact), quotient = x / y, rest = x.fmod(y);
  const Tensor below = rest.ne(0).logical_and(rest.lt(0).ne(y.lt(0)));
  const Tensor whole = ((x - rest) / y - below.to(exact)).round();
  const Tensor with_sign = select_by(whole.eq(0), quotient * 0, whole);
  return select_by(y.eq(0), quotient, with_sign).to(as);
}
bool divide_with(const Tensor& a, const Tensor& b, c10::string_view mode, at::ScalarType as, Tensor& out) {
  if (as == at::kBool || c10::isComplexType(as)) return false;
  if (mode == "floor" && at::isFloatingType(as)) return store(floor_of_floats(a, b, as), out), true;
  if (mode == "floor") return Call(op<"floor_divide">()).in(a, as).in(b, as).into(out);
  if (c10::isIntegralType(as, false)) return Call(op<"quotient">()).in(a, as).in(b, as).into(out);
  Tensor q;
  return Call(op<"divide">()).in(a, as).in(b, as).make(q) && Call(op<"trunc">()).in(q).into(out);
}
Tensor& div_mode_out(const Tensor& a, const Tensor& b, std::optional<c10::string_view> mode, Tensor& out) {
  const auto as = at::result_type(a, b);
  if (!mode && binary_into(op<"divide">(), a, b, compute_dtype(as, out), out)) return out;
  if (mode && divide_with(a, b, *mode, as, out)) return out;
  return fall_back<aten::div_out_mode>(a, b, mode, out);
}
Tensor floor_quotient(const Tensor& a, const Tensor& b) {
  const auto as = at::result_type(a, b);
  if (at::isFloatingType(as)) return floor_of_floats(a, b, as);
  Tensor r;
  const bool fits = as != at::kBool && !c10::isComplexType(as);
  return fits && Call(op<"floor_divide">()).in(a, as).in(b, as).make(r) ? r : fall_back<aten::floor_divide>(a, b);
}
Tensor& floor_quotient_out(const Tensor& a, const Tensor& b, Tensor& out) {
  const Tensor r = floor_quotient(a, b);
  if (out.is_same(a) && out.sizes() != r.sizes()) return fall_back<aten::floor_divide__Tensor>(out, b);  // raises
  return store(r, out);
}
Tensor& floor_quotient_(Tensor& a, const Tensor& b) { return floor_quotient_out(a, b, a); }
// Of magnitudes the remainder is exact; the sign is the dividend's.
Tensor& fmod_out(const Tensor& a, const Tensor& b, Tensor& out) {
  const auto as = at::result_type(a, b);
  if (!at::isFloatingType(as) || as != out.scalar_type()) return fall_back<aten::fmod_Tensor_out>(a, b, out);
  return store(a.to(as).abs().remainder(b.to(as).abs()).copysign(a), out);
}
Tensor remainder_of_number(const Scalar& a, const Tensor& b) {
  return at::native::wrapped_scalar_tensor(a).remainder(b);
}

// ---- NaN counts as missing
template <class Aten, Name name>
Tensor& ignoring_nan_out(const Tensor& a, const Tensor& b, Tensor& out) {
  if (!is_real_float(out)) return binary<Aten, name>(a, b, out);
  Tensor r;
  const auto as = out.scalar_type();
  if (!Call(op<name>()).in(a, as).in(b, as).make(r)) return fall_back<Aten>(a, b, out);
  return store(select_by(a.isnan(), b, select_by(b.isnan(), a, r)), out);
}
Tensor& nan_to_num_out(const Tensor& x, std::optional<double> nan, std::optional<double> positive,
                       std::optional<double> negative, Tensor& out) {
  double largest;
  switch (x.scalar_type()) {
    case at::kFloat: largest = std::numeric_limits<float>::max(); break;
    case at::kDouble: largest = std::numeric_limits<double>::max(); break;
    case at::kHalf: largest = 65504; break;
    case at::kBFloat16: largest = 3.3895313892515355e38; break;
    default: return fall_back<aten::nan_to_num_out>(x, nan, positive, negative, out);
  }
  Tensor r = x.masked_fill(x.isnan(), nan.value_or(0));
  r = r.masked_fill(x.eq(kInfinity), positive.value_or(largest));
  return store(r.masked_fill(x.eq(-kInfinity), negative.value_or(-largest)), out);
}

// ---- others
Tensor& frac_out(const Tensor& x, Tensor& out) {
  return is_real_float(x) ? store(x - x.trunc(), out) : fall_back<aten::frac_out>(x, out);
}
Tensor& heaviside_out(const Tensor& x, const Tensor& at_zero, Tensor& out) {
  if (x.is_complex() || x.scalar_type() == at::kBool) return fall_back<aten::heaviside_out>(x, at_zero, out);
  return store(select_by(x.eq(0), at_zero, x.gt(0).to(x.scalar_type())), out);
}
Tensor& isposinf_out(const Tensor& x, Tensor& out) {
  return is_real_float(x) ? store(x.eq(kInfinity), out) : fall_back<aten::isposinf_out>(x, out);
}
Tensor& isneginf_out(const Tensor& x, Tensor& out) {
  return is_real_float(x) ? store(x.eq(-kInfinity), out) : fall_back<aten::isneginf_out>(x, out);
}
Tensor& logaddexp2_out(const Tensor& a, const Tensor& b, Tensor& out) {
  if (!is_real_float(out)) return fall_back<aten::logaddexp2_out>(a, b, out);
  const Tensor large = a.maximum(b), small = a.minimum(b);
  const Tensor r = large + (small - large).exp2().log1p() * M_LOG2E;
  return store(select_by(a.eq(b), large + 1, r), out);  // also of equal infinities
}
// eps may be above a half: what is below eps becomes eps, and only of the rest what is above 1 - eps becomes that.
Tensor logit_of(const Tensor& x, std::optional<double> eps) {
  const Tensor p = eps ? x.clamp_max(1 - *eps).masked_fill(x.lt(*eps), *eps) : x;
  return (p / (1 - p)).log();
}
Tensor& logit_out(const Tensor& x, std::optional<double> eps, Tensor& out) {
  fit(out, x.sizes());
  return is_real_float(x) ? store(logit_of(x, eps), out) : fall_back<aten::logit_out>(x, eps, out);
}
Tensor logit(const Tensor& x, std::optional<double> eps) {
  return is_real_float(x) ? logit_of(x, eps) : fall_back<aten::logit>(x, eps);
}
Tensor& round_decimals_out(const Tensor& x, int64_t decimals, Tensor& out) {
  if (!is_real_float(x)) return fall_back<aten::round_decimals_out>(x, decimals, out);
  const double scale = std::pow(10., double(std::abs(decimals)));
  return store(decimals < 0 ? (x / scale).round() * scale : (x * scale).round() / scale, out);
}
// torch has 0 at NaN, Dovetail NaN.
Tensor& sign_out(const Tensor& x, Tensor& out) {
  if (!is_real_float(x)) return unary<aten::sign_out, "sign">(x, out);
  Tensor r;
  if (!Call(op<"sign">()).in(x).make(r)) return fall_back<aten::sign_out>(x, out);
  return store(r.masked_fill_(x.isnan(), 0), out);
}
Tensor& sgn_out(const Tensor& x, Tensor& out) {
  return x.is_complex() ? fall_back<aten::sgn_out>(x, out) : sign_out(x, out);
}
Tensor& sinc_out(const Tensor& x, Tensor& out) {
  if (!is_real_float(x)) return fall_back<aten::sinc_out>(x, out);
  const Tensor y = (x.scalar_type() == at::kDouble ? x : x.to(at::kFloat)) * M_PI;
  return store((y.sin() / y).masked_fill_(x.eq(0), 1), out);
}
// x * f(y), 0 where x is 0 unless y is NaN.
Tensor product_with_log(const Tensor& x, const Tensor& y, const Tensor& log) {
  return select_by(y.isnan(), log, select_by(x.eq(0), log.new_zeros({}), x * log));
}
Tensor& xlogy_out(const Tensor& x, const Tensor& y, Tensor& out) {
  return is_real_float(out) ? store(product_with_log(x, y, unwrapped(y).to(out.scalar_type()).log()), out)
                            : fall_back<aten::xlogy_OutTensor>(x, y, out);
}
Tensor& xlog1py_out(const Tensor& x, const Tensor& y, Tensor& out) {
  return is_real_float(out) ? store(product_with_log(x, y, unwrapped(y).to(out.scalar_type()).log1p()), out)
                            : fall_back<aten::special_xlog1py_out>(x, y, out);
}
Tensor& pow_of_number_out(const Scalar& a, const Tensor& b, Tensor& out) {
  const auto as = at::result_type(b, a);
  if (Call(op<"pow">()).number(a).in(b, as).into(out)) return out;
  return fall_back<aten::pow_Scalar_out>(a, b, out);
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::addcmul_out>(m, &addcmul_out);
  implement<aten::addcdiv_out>(m, &addcdiv_out);
  implement<aten::lerp_Scalar_out>(m, &lerp_scalar_out);
  implement<aten::lerp_Tensor_out>(m, &lerp_tensor_out);
  implement<aten::div_out_mode>(m, &div_mode_out);
  implement<aten::floor_divide>(m, &floor_quotient);
  implement<aten::floor_divide_out>(m, &floor_quotient_out);
  implement<aten::floor_divide__Tensor>(m, &floor_quotient_);
  implement<aten::fmod_Tensor_out>(m, &fmod_out);
  m.impl("remainder.Scalar_Tensor", &remainder_of_number);
  implement<aten::fmax_out>(m, &ignoring_nan_out<aten::fmax_out, "maximum">);
  implement<aten::fmin_out>(m, &ignoring_nan_out<aten::fmin_out, "minimum">);
  implement<aten::nan_to_num_out>(m, &nan_to_num_out);
  implement<aten::frac_out>(m, &frac_out);
  implement<aten::heaviside_out>(m, &heaviside_out);
  implement<aten::isposinf_out>(m, &isposinf_out);
  implement<aten::isneginf_out>(m, &isneginf_out);
  implement<aten::logaddexp2_out>(m, &logaddexp2_out);
  implement<aten::logit_out>(m, &logit_out);
  implement<aten::logit>(m, &logit);
  implement<aten::round_decimals_out>(m, &round_decimals_out);
  implement<aten::sign_out>(m, &sign_out);
  implement<aten::sgn_out>(m, &sgn_out);
  implement<aten::sinc_out>(m, &sinc_out);
  implement<aten::xlogy_OutTensor>(m, &xlogy_out);
  implement<aten::special_xlog1py_out>(m, &xlog1py_out);
  implement<aten::pow_Scalar_out>(m, &pow_of_number_out);
}
}  // namespace dovetail_torch
