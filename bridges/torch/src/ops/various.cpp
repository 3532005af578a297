// Ops of several families that are composed of others.
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_prelu_kernel_backward_ops.h>
#include <ATen/ops/_prelu_kernel_ops.h>
#include <ATen/ops/addbmm_ops.h>
#include <ATen/ops/aminmax_ops.h>
#include <ATen/ops/angle_ops.h>
#include <ATen/ops/complex_ops.h>
#include <ATen/ops/equal_ops.h>
#include <ATen/ops/glu_backward_ops.h>
#include <ATen/ops/glu_ops.h>
#include <ATen/ops/isin_ops.h>
#include <ATen/ops/kthvalue_ops.h>
#include <ATen/ops/nansum_ops.h>
#include <ATen/ops/polar_ops.h>
#include <ATen/ops/put_ops.h>
#include <ATen/ops/take_ops.h>
#include <ATen/ops/trace_ops.h>
#include <ATen/ops/vdot_ops.h>
#include <ATen/ops/view_as_real_native.h>

#include <cmath>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;

bool equal(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.device() == b.device(),
              "Expected all tensors to be on the same device, but found at least two devices, ", a.device(),
              " and ", b.device(), "!");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "Expected object of data type ", a.scalar_type(),
              " but got data type ", b.scalar_type());
  return a.sizes() == b.sizes() && (!a.numel() || a.eq(b).all().item().toBool());
}
Tensor addbmm(const Tensor& s, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  if (!is_real_float(a) || !a.numel()) return fall_back<aten::addbmm>(s, a, b, beta, alpha);
  const Tensor sum = a.bmm(b).sum(0), scaled = is_one(alpha) ? sum : sum * alpha;
  if (!beta.isComplex() && beta.toDouble() == 0) return scaled;
  return scaled + (is_one(beta) ? s : s * beta);
}
Tensor vdot(const Tensor& a, const Tensor& b) { return a.is_complex() ? fall_back<aten::vdot>(a, b) : a.dot(b); }
Tensor trace(const Tensor& x) {
  TORCH_CHECK(x.dim() == 2, "trace: expected a matrix");
  return x.diagonal().sum();
}

// ---- complex numbers from real ones
Tensor& complex_out(const Tensor& real, const Tensor& imaginary, Tensor& out) {
  fit(out, at::infer_size(real.sizes(), imaginary.sizes()));
  const Tensor parts = at::native::view_as_real(out);
  parts.select(-1, 0).copy_(real);
  parts.select(-1, 1).copy_(imaginary);
  return out;
}
Tensor& polar_out(const Tensor& magnitude, const Tensor& angle, Tensor& out) {
  return complex_out(magnitude * angle.cos(), magnitude * angle.sin(), out);
}
Tensor angle(const Tensor& x) {
  if (!is_real_float(x)) return fall_back<aten::angle>(x);
  return select_by(x.isnan(), x, x.lt(0).to(x.scalar_type()) * M_PI);
}

// ---- activations with two operands
Tensor prelu(const Tensor& x, const Tensor& w) { return select_by(x.gt(0), x, x * w); }
std::tuple<Tensor, Tensor> prelu_backward(const Tensor& grad, const Tensor& x, const Tensor& w) {
  const Tensor positive = x.gt(0);
  return {select_by(positive, grad, grad * w), select_by(positive, grad.new_zeros({}), grad * x)};
}
Tensor& glu_out(const Tensor& x, int64_t dim, Tensor& out) {
  const auto halves = x.chunk(2, dim);
  return out.copy_(halves[0] * halves[1].sigmoid());
}
Tensor glu_backward(const Tensor& grad, const Tensor& x, int64_t dim) {
  const int64_t axis = at::maybe_wrap_dim(dim, x.dim()), half = x.size(axis) / 2;
  const Tensor a = x.narrow(axis, 0, half), s = x.narrow(axis, half, half).sigmoid();
  Tensor out = empty(x.sizes(), x.scalar_type(), x.device().index());
  out.narrow(axis, 0, half).copy_(grad * s);
  out.narrow(axis, half, half).copy_(grad * a * s * (1 - s));
  return out;
}

// ---- reductions and order
std::tuple<Tensor&, Tensor&> aminmax_out(const Tensor& x, std::optional<int64_t> dim, bool keep, Tensor& low,
                                         Tensor& high) {
  if (!x.numel()) return fall_back<aten::aminmax_out>(x, dim, keep, low, high);
  const Axes axes = dim ? axes_of(x.dim(), c10::IntArrayRef(*dim)) : axes_of(x.dim(), {});
  low.copy_(x.amin(axes, keep));
  high.copy_(x.amax(axes, keep));
  return {low, high};
}
Tensor& nansum_out(const Tensor& x, at::OptionalIntArrayRef dim, bool keep, std::optional<at::ScalarType> dtype,
                   Tensor& out) {
  const Tensor r =
      (is_real_float(x) ? x.masked_fill(x.isnan(), 0) : x).sum(dim, keep, dtype ? *dtype : out.scalar_type());
  fit(out, r.sizes());
  return out.copy_(r);
}
std::tuple<Tensor&, Tensor&> kthvalue_out(const Tensor& x, int64_t k, int64_t dim, bool keep, Tensor& values,
                                          Tensor& indices) {
  if (!x.dim() || !x.numel() || k < 1 || k > x.size(dim))
    return fall_back<aten::kthvalue_values>(x, k, dim, keep, values, indices);
  const auto [sorted, order] = x.sort(dim);
  const Tensor v = sorted.narrow(dim, k - 1, 1), i = order.narrow(dim, k - 1, 1);
  const Tensor value = keep ? v : v.squeeze(dim), index = keep ? i : i.squeeze(dim);
  fit(values, value.sizes());
  fit(indices, index.sizes());
  values.copy_(value);
  indices.copy_(index);
  return {values, indices};
}
Tensor& isin_out(const Tensor& x, const Tensor& among, bool unique, bool invert, Tensor& out) {
  constexpr int64_t kPairs = 1 << 20;  // each is compared: more would need a sort
  if (x.numel() * among.numel() > kPairs || !among.numel())
    return fall_back<aten::isin_Tensor_Tensor_out>(x, among, unique, invert, out);
  const Tensor found = x.unsqueeze(-1).eq(among.reshape({-1})).any(-1);
  fit(out, x.sizes());
  return out.copy_(invert ? found.logical_not() : found);
}

// ---- positions in a flat tensor
Tensor take(const Tensor& x, const Tensor& i) {
  Tensor r;
  if (i.scalar_type() == at::kLong && x.numel() &&
      Call(op<"take">()).in(x.reshape({-1})).in(i).set("axis", int64_t(0)).make(r))
    return r;
  return fall_back<aten::take>(x, i);
}
Tensor& put_(Tensor& x, const Tensor& i, const Tensor& source, bool accumulate) {
  if (i.scalar_type() != at::kLong || !i.numel() || source.numel() != i.numel() ||
      source.scalar_type() != x.scalar_type())
    return fall_back<aten::put_>(x, i, source, accumulate);
  const Tensor flat = x.reshape({-1}), values = source.reshape({-1}), at = i.reshape({-1});
  if (accumulate) flat.index_add_(0, at, values);
  else flat.index_copy_(0, at, values);
  return flat.is_alias_of(x) ? x : x.copy_(flat.view(x.sizes()));
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::equal>(m, &equal);
  implement<aten::addbmm>(m, &addbmm);
  implement<aten::vdot>(m, &vdot);
  implement<aten::trace>(m, &trace);
  implement<aten::complex_out>(m, &complex_out);
  implement<aten::polar_out>(m, &polar_out);
  implement<aten::angle>(m, &angle);
  implement<aten::_prelu_kernel>(m, &prelu);
  implement<aten::_prelu_kernel_backward>(m, &prelu_backward);
  implement<aten::glu_out>(m, &glu_out);
  implement<aten::glu_backward>(m, &glu_backward);
  implement<aten::aminmax_out>(m, &aminmax_out);
  implement<aten::nansum_out>(m, &nansum_out);
  implement<aten::kthvalue_values>(m, &kthvalue_out);
  implement<aten::isin_Tensor_Tensor_out>(m, &isin_out);
  implement<aten::take>(m, &take);
  implement<aten::put_>(m, &put_);
}
}  // namespace dovetail_torch
