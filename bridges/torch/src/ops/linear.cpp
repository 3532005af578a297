// Matrix products.
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/addr_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mv_ops.h>
#include <ATen/ops/vdot_ops.h>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;

// A weight as nn.Linear passes it: its row-major transpose is what `linear` takes and packs.
bool is_transposed(const Tensor& w) {
  return w.dim() == 2 && w.stride(0) == 1 && w.stride(1) == w.size(0) && w.size(0) > 1 && w.size(1) > 1;
}
bool is_float(const Tensor& t) { return is_real_float(t) || t.is_complex(); }
bool product(const Tensor& a, const Tensor& b, Tensor& r) {
  return a.scalar_type() != at::kBool && Call(op<"matmul">()).in(a).in(b).make(r);
}

// The product of two matrices of floats and a bias, in one call. False where the result is not that, or has no
// size.
bool one_call(const Tensor& a, const Tensor& b, const Tensor& bias, Tensor& r) {
  if (!is_real_float(a) || a.dim() != 2 || b.dim() != 2 || a.size(1) != b.size(0) ||
      a.scalar_type() != b.scalar_type() || a.device() != b.device())
    return false;
  if (is_transposed(b)) return Call(op<"linear">()).in(a).in(b.t()).in(bias).make(r);
  return !bias.defined() && product(a, b, r);
}

Tensor mm(const Tensor& a, const Tensor& b) {
  Tensor r;
  return one_call(a, b, {}, r) ? r : aten::mm::redispatch(kStructured, a, b);
}
Tensor& mm_out(const Tensor& a, const Tensor& b, Tensor& out) {
  if (is_real_float(a) && is_transposed(b) && Call(op<"linear">()).in(a).in(b.t()).absent().into(out)) return out;
  if (a.scalar_type() != at::kBool && Call(op<"matmul">()).in(a).in(b).into(out)) return out;
  return fall_back<aten::mm_out>(a, b, out);
}
Tensor& bmm_out(const Tensor& a, const Tensor& b, Tensor& out) {
  if (a.scalar_type() != at::kBool && Call(op<"matmul">()).in(a).in(b).into(out)) return out;
  return fall_back<aten::bmm_out>(a, b, out);
}

// out = beta * s + alpha * p; where beta is 0, NaN of s does not count.
bool combine(const Tensor& s, const Tensor& p, const Scalar& beta, const Scalar& alpha, Tensor& out) {
  const Tensor scaled = is_one(alpha) ? p : p * alpha;
  const bool ignored = !beta.isComplex() && beta.toDouble() == 0;
  if (ignored) store(scaled, out);
  else if (!Call(op<"add">()).in(is_one(beta) ? s : s * beta).in(scaled).into(out))
    store((is_one(beta) ? s : s * beta) + scaled, out);
  return true;
}
Tensor addmm(const Tensor& s, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  Tensor r;
  const bool is_bias = is_one(beta) && is_one(alpha) && s.dim() == 1 && b.dim() == 2 && s.size(0) == b.size(1) &&
                       s.scalar_type() == a.scalar_type() && s.is_privateuseone();
  return is_bias && one_call(a, b, s, r) ? r : aten::addmm::redispatch(kStructured, s, a, b, beta, alpha);
}
Tensor& addmm_out(const Tensor& s, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                  Tensor& out) {
  if (is_one(beta) && is_one(alpha) && s.dim() == 1 && s.size(0) == b.size(1) && is_real_float(a) &&
      is_transposed(b) && Call(op<"linear">()).in(a).in(b.t()).in(s).into(out))
    return out;
  Tensor p;
  if (is_float(a) && product(a, b, p) && combine(s, p, beta, alpha, out)) return out;
  return fall_back<aten::addmm_out>(s, a, b, beta, alpha, out);
}
Tensor& baddbmm_out(const Tensor& s, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                    Tensor& out) {
  Tensor p;
  if (is_float(a) && product(a, b, p) && combine(s, p, beta, alpha, out)) return out;
  return fall_back<aten::baddbmm_out>(s, a, b, beta, alpha, out);
}
Tensor& addmv_out(const Tensor& s, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                  Tensor& out) {
  Tensor p;
  if (is_float(a) && product(a, b, p) && combine(s, p, beta, alpha, out)) return out;
  return fall_back<aten::addmv_out>(s, a, b, beta, alpha, out);
}
// torch checks shapes and dtypes where the runtime refuses them.
Tensor dot(const Tensor& a, const Tensor& b) {
  Tensor r;
  const bool fits = a.dim() == 1 && b.dim() == 1 && a.scalar_type() == b.scalar_type();
  return fits && product(a, b, r) ? r : fall_back<aten::dot>(a, b);
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::mm>(m, &mm);
  implement<aten::mm_out>(m, &mm_out);
  implement<aten::bmm_out>(m, &bmm_out);
  implement<aten::addmm>(m, &addmm);
  implement<aten::addmm_out>(m, &addmm_out);
  implement<aten::baddbmm_out>(m, &baddbmm_out);
  implement<aten::addmv_out>(m, &addmv_out);
  implement<aten::dot>(m, &dot);
}
}  // namespace dovetail_torch
