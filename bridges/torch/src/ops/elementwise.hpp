// What elementwise ops of one and two operands share.
#pragma once
#include "call.hpp"

namespace dovetail_torch {

// A structured op: torch has given `out` its shape and dtype.
template <class Aten, Name name>
Tensor& unary(const Tensor& x, Tensor& out) {
  return Call(op<name>()).in(x, compute_dtype(x.scalar_type(), out)).into(out) ? out : fall_back<Aten>(x, out);
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
template <class Aten, Name name>
Tensor& binary(const Tensor& a, const Tensor& b, Tensor& out) {
  const auto as = compute_dtype(at::result_type(a, b), out);
  return binary_into(op<name>(), a, b, as, out) ? out : fall_back<Aten>(a, b, out);
}
template <class Aten, Name name>
Tensor& binary_number(const Tensor& a, const Scalar& b, Tensor& out) {
  const auto as = compute_dtype(at::result_type(a, b), out);
  return Call(op<name>()).in(a, as).number(b).into(out) ? out : fall_back<Aten>(a, b, out);
}

}  // namespace dovetail_torch
