// What elementwise ops of one and two operands share.
#pragma once
#include "call.hpp"

namespace dovetail_torch {

// torch computes with a Python number alone in the default dtype; its copy keeps the number's precision.
inline Tensor unwrapped(const Tensor& t) { return t.unsafeGetTensorImpl()->is_wrapped_number() ? t.clone() : t; }

// Structured ops: torch has given `out` its shape and dtype, but for an `out` of the caller, which may have any.
// The runtime refuses those that are not the result's. Where an op is not one of floats, integers stay integers
// then.
enum class Integers { stay, become_floats };
template <Integers integers>
at::ScalarType dtype_for(at::ScalarType common, const Tensor& out) {
  return integers == Integers::stay ? common : compute_dtype(common, out);
}
template <class Aten, Name name, Integers integers = Integers::become_floats>
Tensor& unary(const Tensor& x, Tensor& out) {
  const auto as = dtype_for<integers>(x.scalar_type(), out);
  return Call(op<name>()).in(x, as).into(out) ? out : fall_back<Aten>(x, out);
}
// An op whose result has the dtype of the op, as isnan.
template <class Aten, Name name>
Tensor predicate(const Tensor& x) {
  Tensor r;
  return Call(op<name>()).in(x).make(r) ? r : fall_back<Aten>(x);
}

// out = op(a, b), both in `as`.
inline bool binary_into(const dvr_op* op, const Tensor& a, const Tensor& b, at::ScalarType as, const Tensor& out) {
  return Call(op).in(a, as).in(b, as).into(out);
}
template <class Aten, Name name, Integers integers = Integers::stay>
Tensor& binary(const Tensor& a, const Tensor& b, Tensor& out) {
  const auto as = dtype_for<integers>(at::result_type(a, b), out);
  return binary_into(op<name>(), a, b, as, out) ? out : fall_back<Aten>(a, b, out);
}
template <class Aten, Name name>
Tensor& binary_number(const Tensor& a, const Scalar& b, Tensor& out) {
  const auto as = at::result_type(a, b);
  return Call(op<name>()).in(a, as).number(b).into(out) ? out : fall_back<Aten>(a, b, out);
}

}  // namespace dovetail_torch
