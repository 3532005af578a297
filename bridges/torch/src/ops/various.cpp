// Ops of several families that are composed of others.
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_nested_tensor_from_mask_left_aligned_ops.h>
#include <ATen/ops/_prelu_kernel_backward_ops.h>
#include <ATen/ops/_prelu_kernel_ops.h>
#include <ATen/ops/addbmm_ops.h>
#include <ATen/ops/aminmax_ops.h>
#include <ATen/ops/angle_ops.h>
#include <ATen/ops/channel_shuffle_ops.h>
#include <ATen/ops/complex_ops.h>
#include <ATen/ops/conj_physical_ops.h>
#include <ATen/ops/equal_ops.h>
#include <ATen/ops/glu_backward_ops.h>
#include <ATen/ops/glu_ops.h>
#include <ATen/ops/histc_ops.h>
#include <ATen/ops/index_put_ops.h>
#include <ATen/ops/isin_ops.h>
#include <ATen/ops/kthvalue_ops.h>
#include <ATen/ops/linalg_cross_ops.h>
#include <ATen/ops/max_unpool2d_ops.h>
#include <ATen/ops/max_unpool3d_ops.h>
#include <ATen/ops/median_ops.h>
#include <ATen/ops/nanmedian_ops.h>
#include <ATen/ops/nansum_ops.h>
#include <ATen/ops/polar_ops.h>
#include <ATen/ops/put_ops.h>
#include <ATen/ops/renorm_ops.h>
#include <ATen/ops/repeat_interleave_ops.h>
#include <ATen/ops/special_entr_ops.h>
#include <ATen/ops/take_ops.h>
#include <ATen/ops/trace_ops.h>
#include <ATen/ops/vdot_ops.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;

bool equal(const Tensor& a, const Tensor& b) {
  expect_same_device(a.device(), b);
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
  expect_same_device(real.device(), out);
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
  return store(halves[0] * halves[1].sigmoid(), out);
}
Tensor glu_backward(const Tensor& grad, const Tensor& x, int64_t dim) {
  const int64_t axis = at::maybe_wrap_dim(dim, x.dim()), half = x.size(axis) / 2;
  const Tensor a = x.narrow(axis, 0, half), s = x.narrow(axis, half, half).sigmoid();
  Tensor out = empty(x.sizes(), x.scalar_type(), x.device().index());
  out.narrow(axis, 0, half).copy_(grad * s);
  out.narrow(axis, half, half).copy_(grad * a * s * (1 - s));
  return out;
}

Tensor& entr_out(const Tensor& x, Tensor& out) {
  if (!is_real_float(x)) return fall_back<aten::special_entr_out>(x, out);
  const Tensor inside = select_by(x.eq(0), x.new_zeros({}), x.log() * x.neg());
  return store(inside.masked_fill(x.lt(0), -INFINITY), out);
}
Tensor& conj_physical_out(const Tensor& x, Tensor& out) {
  fit(out, x.sizes());
  if (!x.is_complex()) return store(x, out);
  return Call(op<"conj">()).in(x).into(out) ? out : fall_back<aten::conj_physical_out>(x, out);
}

// ---- places
Tensor channel_shuffle(const Tensor& x, int64_t groups) {
  if (x.dim() < 3 || groups < 1 || x.size(1) % groups || !x.numel())
    return fall_back<aten::channel_shuffle>(x, groups);
  return x.view({x.size(0), groups, x.size(1) / groups, -1}).transpose(1, 2).reshape(x.sizes());
}
// Each value goes back to the place that its index names.
bool unpool(const Tensor& x, const Tensor& indices, c10::IntArrayRef size, Tensor& out) {
  const int64_t n = int64_t(size.size()), inner = c10::multiply_integers(size);
  if (!is_real_float(x) || !x.numel() || x.sizes() != indices.sizes()) return false;
  Axes whole(x.sizes().begin(), x.sizes().end() - n);
  const int64_t outer = c10::multiply_integers(whole);
  whole.append(size.begin(), size.end());
  out = x.new_zeros({outer, inner}).scatter_(1, indices.reshape({outer, -1}), x.reshape({outer, -1})).view(whole);
  return true;
}
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, c10::IntArrayRef size) {
  Tensor r;
  return size.size() == 2 && unpool(x, indices, size, r) ? r : fall_back<aten::max_unpool2d>(x, indices, size);
}
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, c10::IntArrayRef size, c10::IntArrayRef stride,
                    c10::IntArrayRef padding) {
  Tensor r;
  return size.size() == 3 && unpool(x, indices, size, r)
             ? r
             : fall_back<aten::max_unpool3d>(x, indices, size, stride, padding);
}
// The number of the repetition that each result element belongs to: how many ends lie at or before it.
Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> size) {
  if (repeats.dim() != 1 || !repeats.numel() || repeats.is_floating_point())
    return fall_back<aten::repeat_interleave_Tensor>(repeats, size);
  TORCH_CHECK(repeats.ge(0).all().item().toBool(), "repeats can not be negative");
  const Tensor ends = repeats.to(at::kLong).cumsum(0);
  const int64_t n = ends[-1].item().toLong();
  Tensor steps = ends.new_zeros({n + 1});
  steps.scatter_add_(0, ends, ends.new_ones({ends.size(0)}));
  return steps.narrow(0, 0, n).cumsum(0).to(repeats.scalar_type());
}
// torch's CPU has no kernel for integers, which it has for GPUs.
Tensor histc(const Tensor& x, int64_t bins, const Scalar& low, const Scalar& high) {
  if (!c10::isIntegralType(x.scalar_type(), false)) return fall_back<aten::histc>(x, bins, low, high);
  return fall_back<aten::histc>(x.to(at::kDouble), bins, low, high).to(x.scalar_type());
}
// No nested tensors: an encoder layer then computes with the padding and its mask.
bool is_left_aligned(const Tensor&, const Tensor&) { return false; }
Tensor& cross_out(const Tensor& a, const Tensor& b, int64_t dim, Tensor& out) {
  if (!is_real_float(out) || a.dim() != b.dim() || !a.numel() || !b.numel())
    return fall_back<aten::linalg_cross_out>(a, b, dim, out);
  const auto size = at::infer_size(a.sizes(), b.sizes());
  const int64_t axis = at::maybe_wrap_dim(dim, a.dim());
  if (a.size(axis) != 3 || b.size(axis) != 3) return fall_back<aten::linalg_cross_out>(a, b, dim, out);  // raises
  const Tensor x = a.expand(size), y = b.expand(size);
  const auto turned = [&](const Tensor& t, int64_t by) { return t.roll({by}, {axis}); };
  return store(turned(x, -1) * turned(y, -2) - turned(x, -2) * turned(y, -1), out);
}
Tensor& renorm_out(const Tensor& x, const Scalar& p, int64_t dim, const Scalar& most, Tensor& out) {
  if (!is_real_float(x) || !x.numel()) return fall_back<aten::renorm_out>(x, p, dim, most, out);
  const int64_t axis = at::maybe_wrap_dim(dim, x.dim());
  Axes others;
  for (int64_t i = 0; i < x.dim(); ++i)
    if (i != axis) others.push_back(i);
  const Tensor norm = x.norm(p, others, true);
  const Tensor scale = select_by(norm.gt(most), (norm + 1e-7).reciprocal() * most, norm.new_ones({}));
  return store(x * scale, out);
}

// ---- reductions and order
std::tuple<Tensor&, Tensor&> aminmax_out(const Tensor& x, std::optional<int64_t> dim, bool keep, Tensor& low,
                                         Tensor& high) {
  if (!x.numel()) return fall_back<aten::aminmax_out>(x, dim, keep, low, high);
  const Axes axes = dim ? axes_of(x.dim(), c10::IntArrayRef(*dim)) : axes_of(x.dim(), {});
  store(x.amin(axes, keep), low);
  store(x.amax(axes, keep), high);
  return {low, high};
}
Tensor nansum(const Tensor& x, at::OptionalIntArrayRef dim, bool keep, std::optional<at::ScalarType> dtype) {
  if (x.is_complex()) return fall_back<aten::nansum>(x, dim, keep, dtype);
  return (is_real_float(x) ? x.masked_fill(x.isnan(), 0) : x).sum(dim, keep, dtype);
}
Tensor& nansum_out(const Tensor& x, at::OptionalIntArrayRef dim, bool keep, std::optional<at::ScalarType> dtype,
                   Tensor& out) {
  const Tensor r =
      (is_real_float(x) ? x.masked_fill(x.isnan(), 0) : x).sum(dim, keep, dtype ? *dtype : out.scalar_type());
  return store(r, out);
}
std::tuple<Tensor&, Tensor&> kthvalue_out(const Tensor& x, int64_t k, int64_t dim, bool keep, Tensor& values,
                                          Tensor& indices) {
  if (!x.dim() || !x.numel() || k < 1 || k > x.size(dim))
    return fall_back<aten::kthvalue_values>(x, k, dim, keep, values, indices);
  const auto [sorted, order] = x.sort(dim);
  const Tensor v = sorted.narrow(dim, k - 1, 1), i = order.narrow(dim, k - 1, 1);
  const Tensor value = keep ? v : v.squeeze(dim), index = keep ? i : i.squeeze(dim);
  return {store(value, values), store(index, indices)};
}
Tensor& isin_out(const Tensor& x, const Tensor& among, bool unique, bool invert, Tensor& out) {
  constexpr int64_t kPairs = 1 << 26, kBlock = 1 << 22;  // each pair is compared: more would need a sort
  if (x.numel() * among.numel() > kPairs)
    return fall_back<aten::isin_Tensor_Tensor_out>(x, among, unique, invert, out);
  const Tensor column = x.unsqueeze(-1), values = among.reshape({-1});
  const int64_t n = values.numel(), most = std::max<int64_t>(1, kBlock / std::max<int64_t>(1, x.numel()));
  Tensor found;
  for (int64_t i = 0; i < n; i += most) {
    const Tensor here = column.eq(values.narrow(0, i, std::min(most, n - i))).any(-1);
    found = found.defined() ? found.logical_or(here) : here;
  }
  if (!found.defined()) found = at::zeros(x.sizes(), x.options().dtype(at::kBool));
  return store(invert ? found.logical_not() : found, out);
}

// The lower one of two medians; NaN comes last in the order.
Tensor median(const Tensor& x) {
  if (!x.numel() || !is_real_float(x)) return fall_back<aten::median>(x);
  const Tensor sorted = std::get<0>(x.reshape({-1}).sort(0));
  return select_by(sorted[-1].isnan(), sorted[-1], sorted[(x.numel() - 1) / 2]);
}
Tensor nanmedian(const Tensor& x) {
  if (!x.numel() || !is_real_float(x)) return fall_back<aten::nanmedian>(x);
  const Tensor sorted = std::get<0>(x.reshape({-1}).sort(0));
  const Tensor place = (sorted.isnan().logical_not().sum() - 1).clamp_min(0).div(2, "floor");
  return sorted.index_select(0, place.reshape({1})).squeeze(0);
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
  Tensor flat = x.reshape({-1});
  const Tensor values = source.reshape({-1}), at = i.reshape({-1});
  at::_ops::index_put_::call(flat, c10::List<OptionalTensor>({at}), values, accumulate);
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
  implement<aten::nansum>(m, &nansum);
  implement<aten::special_entr_out>(m, &entr_out);
  implement<aten::conj_physical_out>(m, &conj_physical_out);
  implement<aten::channel_shuffle>(m, &channel_shuffle);
  implement<aten::max_unpool2d>(m, &max_unpool2d);
  implement<aten::max_unpool3d>(m, &max_unpool3d);
  implement<aten::repeat_interleave_Tensor>(m, &repeat_interleave);
  implement<aten::histc>(m, &histc);
  implement<aten::_nested_tensor_from_mask_left_aligned>(m, &is_left_aligned);
  implement<aten::linalg_cross_out>(m, &cross_out);
  implement<aten::renorm_out>(m, &renorm_out);
  implement<aten::kthvalue_values>(m, &kthvalue_out);
  implement<aten::isin_Tensor_Tensor_out>(m, &isin_out);
  implement<aten::median>(m, &median);
  implement<aten::nanmedian>(m, &nanmedian);
  implement<aten::take>(m, &take);
  implement<aten::put_>(m, &put_);
  // torch's own looks at the device, and has a kernel for three.
  m.impl("mode.values", torch::CppFunction::makeFromBoxedFunction<&fall_back_boxed>());
}
}  // namespace dovetail_torch
