// Elementwise ops of two and three operands, comparisons, and fills.
#include <ATen/ops/add_ops.h>
#include <ATen/ops/atan2_ops.h>
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/bitwise_left_shift_ops.h>
#include <ATen/ops/bitwise_or_ops.h>
#include <ATen/ops/bitwise_right_shift_ops.h>
#include <ATen/ops/bitwise_xor_ops.h>
#include <ATen/ops/clamp_max_ops.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/copysign_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/fmod_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/hypot_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/logaddexp_ops.h>
#include <ATen/ops/logical_and_ops.h>
#include <ATen/ops/logical_or_ops.h>
#include <ATen/ops/logical_xor_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/maximum_ops.h>
#include <ATen/ops/minimum_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/nextafter_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/remainder_ops.h>
#include <ATen/ops/rsub_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/where_ops.h>
#include <ATen/ops/zero_ops.h>

#include <ATen/ScalarOps.h>

#include "ops/elementwise.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;

// ---- the hottest calls without torch's inference: equal floats in row-major order, or one and a Python number
bool is_plain(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && is_real_float(a) && a.device() == b.device() && a.is_contiguous() &&
         b.is_contiguous();
}
bool has_plain_result(const Tensor& a, const Tensor& b) {
  if (!b.unsafeGetTensorImpl()->is_wrapped_number()) return is_plain(a, b);
  return a.is_privateuseone() && is_real_float(a) && a.is_contiguous() && !b.is_complex();
}
template <class Aten, Name name>
Tensor binary_new(const Tensor& a, const Tensor& b) {
  Tensor r;
  if (has_plain_result(a, b) && Call(op<name>()).in(a).in(b).make(r)) return r;
  return Aten::redispatch(kStructured, a, b);
}
template <class Aten, Name name>
Tensor compared_new(const Tensor& a, const Scalar& b) {
  Tensor r;
  const bool is_plain = is_real_float(a) && a.is_contiguous() && !b.isComplex();
  if (is_plain && Call(op<name>()).in(a).number(b).make(r)) return r;
  return Aten::redispatch(kStructured, a, b);
}
template <class Aten, Name name>
Tensor add_new(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  Tensor r;
  if (is_one(alpha) && has_plain_result(a, b) && Call(op<name>()).in(a).in(b).make(r)) return r;
  return Aten::redispatch(kStructured, a, b, alpha);
}

// torch multiplies and divides 16-bit floats by a number in float32, whose range and precision are larger.
template <Name name>
bool scaled(const Tensor& a, const Tensor& b, Tensor& r) {
  if (!at::isReducedFloatingType(a.scalar_type()) || !b.is_cpu() || b.dim() || b.is_complex()) return false;
  const auto number = float(value_of(b).toDouble());  // infinite beyond its range
  const bool is_exact =
      number == (a.scalar_type() == at::kHalf ? float(c10::Half(number)) : float(c10::BFloat16(number)));
  return !is_exact && Call(op<name>()).in(a, at::kFloat).number(Scalar(number)).make(r);
}
template <class Aten, Name name>
Tensor scaled_new(const Tensor& a, const Tensor& b) {
  Tensor r;
  return scaled<name>(a, b, r) ? r.to(a.scalar_type()) : binary_new<Aten, name>(a, b);
}
template <class Aten, Name name, Integers integers = Integers::stay>
Tensor& scaled_out(const Tensor& a, const Tensor& b, Tensor& out) {
  Tensor r;
  return scaled<name>(a, b, r) ? store(r, out) : binary<Aten, name, integers>(a, b, out);
}

// In place, of the hottest ones.
template <class Aten, Name name>
Tensor& binary_in_place(Tensor& a, const Tensor& b) {
  if (is_plain(a, b) && a.sizes() == b.sizes() && Call(op<name>()).in(a).in(b).over(a)) return a;
  return Aten::redispatch(kStructured, a, b);
}
Tensor& add_in_place(Tensor& a, const Tensor& b, const Scalar& alpha) {
  if (is_one(alpha) && is_plain(a, b) && a.sizes() == b.sizes() && Call(op<"add">()).in(a).in(b).over(a)) return a;
  return aten::add__Tensor::redispatch(kStructured, a, b, alpha);
}

// a + alpha * b
template <class Aten, Name name>
Tensor& add_out(const Tensor& a, const Tensor& b, const Scalar& alpha, Tensor& out) {
  const auto as = at::result_type(a, b);
  if (as == at::kBool) return fall_back<Aten>(a, b, alpha, out);
  const Tensor scaled = is_one(alpha) ? b : unwrapped(b).to(as) * alpha;
  return binary_into(op<name>(), a, scaled, as, out) ? out : fall_back<Aten>(a, b, alpha, out);
}
Tensor rsub(const Tensor& a, const Tensor& b, const Scalar& alpha) { return b.sub(a, alpha); }
Tensor rsub_scalar(const Tensor& a, const Scalar& b, const Scalar& alpha) {
  return at::native::wrapped_scalar_tensor(b).sub(a, alpha);
}

Tensor pow_scalar(const Tensor& a, const Scalar& b) {
  Tensor r;
  if (is_real_float(a) && a.is_contiguous() && !b.isComplex()) {
    const double power = b.toDouble();
    if (power == 1) return a.clone();
    if (power == 2 ? Call(op<"square">()).in(a).make(r) : Call(op<"pow">()).in(a).number(b).make(r)) return r;
  }
  return aten::pow_Tensor_Scalar::redispatch(kStructured, a, b);
}
Tensor& pow_scalar_out(const Tensor& a, const Scalar& b, Tensor& out) {
  const auto as = at::result_type(a, b);
  if (is_one(b) && as == a.scalar_type() && as == out.scalar_type()) return store(a, out);
  if (!b.isComplex() && b.toDouble() == 2 && Call(op<"square">()).in(a, as).into(out)) return out;
  return Call(op<"pow">()).in(a, as).number(b).into(out) ? out : fall_back<aten::pow_Tensor_Scalar_out>(a, b, out);
}

// Not structured: `out` may have another shape, and any dtype.
template <class Aten, Name name>
Tensor& logical_out(const Tensor& a, const Tensor& b, Tensor& out) {
  Tensor r;
  if (!Call(op<name>()).in(a, at::kBool).in(b, at::kBool).make(r)) return fall_back<Aten>(a, b, out);
  TORCH_CHECK(out.sizes() == r.sizes() || !(out.is_same(a) || out.is_same(b)), "output with shape ", out.sizes(),
              " doesn't match the broadcast shape ", r.sizes());
  return store(r, out);
}

at::ScalarType where_dtype(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() ? a.scalar_type() : at::result_type(a, b);
}
Tensor where_self(const Tensor& c, const Tensor& a, const Tensor& b) {
  const auto as = where_dtype(a, b);
  Tensor r;
  const bool fits = c.scalar_type() == at::kBool;
  return fits && Call(op<"where">()).in(c).in(a, as).in(b, as).make(r) ? r : fall_back<aten::where_self>(c, a, b);
}
Tensor& where_out(const Tensor& c, const Tensor& a, const Tensor& b, Tensor& out) {
  const Tensor r = where_self(c, a, b);
  return store(r, out);
}

Tensor& clamp_out(const Tensor& x, const std::optional<Scalar>& low, const std::optional<Scalar>& high,
                  Tensor& out) {
  const bool fits = c10::canCast(x.scalar_type(), out.scalar_type());
  if (fits && Call(op<"clip">()).in(x, out.scalar_type()).number(low).number(high).into(out)) return out;
  return fall_back<aten::clamp_out>(x, low, high, out);
}
Tensor& clamp_tensor_out(const Tensor& x, const OptionalTensor& low, const OptionalTensor& high, Tensor& out) {
  const auto as = out.scalar_type();
  const Tensor none;
  if (Call(op<"clip">()).in(x, as).in(low ? *low : none, as).in(high ? *high : none, as).into(out)) return out;
  return fall_back<aten::clamp_Tensor_out>(x, low, high, out);
}
Tensor& clamp_min_out(const Tensor& x, const Scalar& low, Tensor& out) {
  if (Call(op<"clip">()).in(x, out.scalar_type()).number(low).absent().into(out)) return out;
  return fall_back<aten::clamp_min_out>(x, low, out);
}
Tensor& clamp_max_out(const Tensor& x, const Scalar& high, Tensor& out) {
  if (Call(op<"clip">()).in(x, out.scalar_type()).absent().number(high).into(out)) return out;
  return fall_back<aten::clamp_max_out>(x, high, out);
}

// Writes the number as torch's kernel of fill_ converts it, and raises as that does.
bool put_number(const Scalar& value, at::ScalarType dtype, void* to) {
#define DOVETAIL_NUMBER(T, name) \
  case at::ScalarType::name: *static_cast<T*>(to) = value.to<T>(); return true;
  switch (dtype) {
    AT_FORALL_SCALAR_TYPES_AND3(Bool, Half, BFloat16, DOVETAIL_NUMBER)
    AT_FORALL_COMPLEX_TYPES(DOVETAIL_NUMBER)
    default: return false;
  }
#undef DOVETAIL_NUMBER
}
Tensor& fill_number_(Tensor& x, const Scalar& value) {
  if (x.numel() == 0) return x;
  dvr_tensor to, from;
  if (describe(x, to) && !x.is_neg() && !x.is_conj()) {
    alignas(16) char number[16];
    Tensor other;
    void* at = number;
    if (!put_number(value, x.scalar_type(), at)) {
      other = at::native::wrapped_scalar_tensor(value).to(x.scalar_type());
      at = other.mutable_data_ptr();
    }
    from.view = {at, {}, 0, to.view.dtype, from.dims, from.dims, 0};
    from.buffer = nullptr;
    const dvr_status status = dvr_copy(&to, &from);
    if (status == DVR_OK) return x;
    if (!is_refusal(status)) raise(status);
  }
  return fall_back<aten::fill__Scalar>(x, value);
}
Tensor& fill_tensor_(Tensor& x, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
              " dimensions.");
  return value.is_cpu() ? fill_number_(x, value.item()) : x.copy_(value.expand(x.sizes()));
}
Tensor& zero_(Tensor& x) { return fill_number_(x, 0); }
Tensor& masked_fill_(Tensor& x, const Tensor& mask, const Scalar& value) {
  if (mask.scalar_type() == at::kBool && Call(op<"where">()).in(mask).number(value).in(x).over(x)) return x;
  return fall_back<aten::masked_fill__Scalar>(x, mask, value);
}
Tensor& masked_fill_tensor_(Tensor& x, const Tensor& mask, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  if (mask.scalar_type() == at::kBool && Call(op<"where">()).in(mask).in(value, x.scalar_type()).in(x).over(x))
    return x;
  return fall_back<aten::masked_fill__Tensor>(x, mask, value);
}
}  // namespace

#define DOVETAIL_COMPARISON(aten_name, name)                                               \
  implement<aten::aten_name##_Tensor>(m, &binary_new<aten::aten_name##_Tensor, name>);     \
  implement<aten::aten_name##_Scalar>(m, &compared_new<aten::aten_name##_Scalar, name>);   \
  implement<aten::aten_name##_Tensor_out>(m, &binary<aten::aten_name##_Tensor_out, name>); \
  implement<aten::aten_name##_Scalar_out>(m, &binary_number<aten::aten_name##_Scalar_out, name>)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::add_Tensor>(m, &add_new<aten::add_Tensor, "add">);
  implement<aten::sub_Tensor>(m, &add_new<aten::sub_Tensor, "subtract">);
  implement<aten::mul_Tensor>(m, &scaled_new<aten::mul_Tensor, "multiply">);
  implement<aten::div_Tensor>(m, &scaled_new<aten::div_Tensor, "divide">);
  implement<aten::maximum>(m, &binary_new<aten::maximum, "maximum">);
  implement<aten::minimum>(m, &binary_new<aten::minimum, "minimum">);
  implement<aten::add__Tensor>(m, &add_in_place);
  implement<aten::mul__Tensor>(m, &binary_in_place<aten::mul__Tensor, "multiply">);
  implement<aten::add_out>(m, &add_out<aten::add_out, "add">);
  implement<aten::sub_out>(m, &add_out<aten::sub_out, "subtract">);
  implement<aten::rsub_Tensor>(m, &rsub);
  implement<aten::rsub_Scalar>(m, &rsub_scalar);
  implement<aten::mul_out>(m, &scaled_out<aten::mul_out, "multiply">);
  implement<aten::div_out>(m, &scaled_out<aten::div_out, "divide", Integers::become_floats>);
  implement<aten::maximum_out>(m, &binary<aten::maximum_out, "maximum">);
  implement<aten::minimum_out>(m, &binary<aten::minimum_out, "minimum">);
  implement<aten::atan2_out>(m, &binary<aten::atan2_out, "atan2", Integers::become_floats>);
  implement<aten::remainder_Tensor_out>(m, &binary<aten::remainder_Tensor_out, "remainder">);
  implement<aten::logaddexp_out>(m, &binary<aten::logaddexp_out, "logaddexp">);
  implement<aten::hypot_out>(m, &binary<aten::hypot_out, "hypot">);
  implement<aten::nextafter_out>(m, &binary<aten::nextafter_out, "nextafter">);
  implement<aten::copysign_out>(m, &binary<aten::copysign_out, "copysign", Integers::become_floats>);
  implement<aten::pow_Tensor_Tensor_out>(m, &binary<aten::pow_Tensor_Tensor_out, "pow">);
  implement<aten::pow_Tensor_Scalar>(m, &pow_scalar);
  implement<aten::pow_Tensor_Scalar_out>(m, &pow_scalar_out);
  implement<aten::bitwise_and_Tensor_out>(m, &binary<aten::bitwise_and_Tensor_out, "bitwise_and">);
  implement<aten::bitwise_or_Tensor_out>(m, &binary<aten::bitwise_or_Tensor_out, "bitwise_or">);
  implement<aten::bitwise_xor_Tensor_out>(m, &binary<aten::bitwise_xor_Tensor_out, "bitwise_xor">);
  implement<aten::logical_and_out>(m, &logical_out<aten::logical_and_out, "logical_and">);
  implement<aten::logical_or_out>(m, &logical_out<aten::logical_or_out, "logical_or">);
  implement<aten::logical_xor_out>(m, &logical_out<aten::logical_xor_out, "logical_xor">);
  DOVETAIL_COMPARISON(eq, "equal");
  DOVETAIL_COMPARISON(ne, "not_equal");
  DOVETAIL_COMPARISON(lt, "less");
  DOVETAIL_COMPARISON(le, "less_equal");
  DOVETAIL_COMPARISON(gt, "greater");
  DOVETAIL_COMPARISON(ge, "greater_equal");
  implement<aten::where_self>(m, &where_self);
  implement<aten::where_self_out>(m, &where_out);
  implement<aten::clamp_out>(m, &clamp_out);
  implement<aten::clamp_Tensor_out>(m, &clamp_tensor_out);
  implement<aten::clamp_min_out>(m, &clamp_min_out);
  implement<aten::clamp_max_out>(m, &clamp_max_out);
  implement<aten::clamp_min_Tensor_out>(m, &binary<aten::clamp_min_Tensor_out, "maximum">);
  implement<aten::clamp_max_Tensor_out>(m, &binary<aten::clamp_max_Tensor_out, "minimum">);
  implement<aten::fill__Scalar>(m, &fill_number_);
  implement<aten::fill__Tensor>(m, &fill_tensor_);
  implement<aten::zero_>(m, &zero_);
  implement<aten::masked_fill__Scalar>(m, &masked_fill_);
  implement<aten::masked_fill__Tensor>(m, &masked_fill_tensor_);
}
}  // namespace dovetail_torch
