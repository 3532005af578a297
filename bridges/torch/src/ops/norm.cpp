// Normalisations and their gradients.
#include <ATen/ops/_fused_rms_norm_backward_ops.h>
#include <ATen/ops/_fused_rms_norm_ops.h>
#include <ATen/ops/_native_batch_norm_legit_no_training_ops.h>
#include <ATen/ops/_native_batch_norm_legit_ops.h>
#include <ATen/ops/empty_ops.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>
#include <ATen/ops/native_group_norm_backward_ops.h>
#include <ATen/ops/native_group_norm_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>

#include <ATen/AccumulateType.h>

#include <cmath>
#include <limits>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Ints = c10::IntArrayRef;

Tensor nothing(const Tensor& x) { return empty({0}, x.scalar_type(), x.device().index()); }
Axes all_axes_but(const Tensor& x, int64_t kept) {
  Axes axes;
  for (int64_t i = 0; i < x.dim(); ++i)
    if (i != kept) axes.push_back(i);
  return axes;
}
Axes last_axes(const Tensor& x, size_t n) {
  Axes axes;
  for (int64_t i = x.dim() - int64_t(n); i < x.dim(); ++i) axes.push_back(i);
  return axes;
}
// (C,) as (1, C, 1, ...)
Tensor along_channels(const Tensor& t, const Tensor& x) {
  Axes shape(size_t(x.dim()), 1);
  shape[1] = x.size(1);
  return t.view(shape);
}

// Parameters of float32 serve 16-bit floats; the result has x's dtype.
bool served(const Tensor& x, const OptionalTensor& parameter) {
  return !given(parameter) || parameter->scalar_type() == x.scalar_type() ||
         (at::isReducedFloatingType(x.scalar_type()) && parameter->scalar_type() == at::kFloat);
}
// x in the parameters' dtype, which is that of the statistics.
Tensor wide(const Tensor& x, const OptionalTensor& w, const OptionalTensor& b) {
  return given(w) ? x.to(w->scalar_type()) : given(b) ? x.to(b->scalar_type()) : x;
}
Tensor like(const Tensor& y, const Tensor& x) {
  return y.scalar_type() == x.scalar_type() ? y : y.to(x.scalar_type());
}

// ---- batch norm
Three batch_norm(const Tensor& x, const OptionalTensor& w, const OptionalTensor& b,
                 const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                 double momentum, double eps) {
  Tensor y, mean, var;
  if (!served(x, w) || !served(x, b))
    return fall_back<aten::native_batch_norm>(x, w, b, running_mean, running_var, training, momentum, eps);
  if (!training && x.numel() &&
      Call(op<"batch_norm">()).in(x).in(running_mean).in(running_var).in(w).in(b).set("eps", eps).make(y))
    return {like(y, x), nothing(x), nothing(x)};
  if (training && x.numel() && is_real_float(x) &&
      Call(op<"batch_norm_train">()).in(x).in(w).in(b).set("eps", eps).make(y, mean, var)) {
    const double n = double(x.numel()) / double(x.size(1));
    if (given(running_mean)) Tensor(*running_mean).mul_(1 - momentum).add_(mean, momentum);
    if (given(running_var)) Tensor(*running_var).mul_(1 - momentum).add_(var, momentum * n / (n - 1));
    return {like(y, x), mean, var.add_(eps).rsqrt_()};
  }
  return fall_back<aten::native_batch_norm>(x, w, b, running_mean, running_var, training, momentum, eps);
}
Three batch_norm_legit(const Tensor& x, const OptionalTensor& w, const OptionalTensor& b, Tensor& running_mean,
                       Tensor& running_var, bool training, double momentum, double eps) {
  return batch_norm(x, w, b, running_mean, running_var, training, momentum, eps);
}
Three batch_norm_legit_no_stats(const Tensor& x, const OptionalTensor& w, const OptionalTensor& b, bool training,
                                double momentum, double eps) {
  return batch_norm(x, w, b, {}, {}, training, momentum, eps);
}

Three batch_norm_backward(const Tensor& grad, const Tensor& x, const OptionalTensor& w,
                          const OptionalTensor& running_mean, const OptionalTensor& running_var,
                          const OptionalTensor& mean, const OptionalTensor& inverse_std, bool training, double eps,
                          std::array<bool, 3> mask) {
  Tensor dx, dw, db;
  if (training && x.numel() &&
      Call(op<"batch_norm_train_grad">()).in(x).in(grad).in(w).set("eps", eps).make(dx, dw, db))
    return {mask[0] ? dx : Tensor(), mask[1] ? dw : Tensor(), mask[2] ? db : Tensor()};
  if (training || !x.numel())
    return fall_back<aten::native_batch_norm_backward>(grad, x, w, running_mean, running_var, mean, inverse_std,
                                                       training, eps, mask);
  const Axes axes = all_axes_but(x, 1);
  const Tensor scale = (*running_var + eps).rsqrt();
  if (mask[0]) dx = grad * along_channels(given(w) ? scale * *w : scale, x);
  if (mask[1]) dw = (grad * (x - along_channels(*running_mean, x))).sum(axes) * scale;
  if (mask[2]) db = grad.sum(axes);
  return {dx, dw, db};
}

// ---- layer norm
// Of no rows: the results are empty.
bool no_rows(const Tensor& x, Ints shape) { return !x.numel() && c10::multiply_integers(shape) > 0; }
Three layer_norm(const Tensor& x, Ints shape, const OptionalTensor& w, const OptionalTensor& b, double eps) {
  if (no_rows(x, shape)) {
    const Tensor none = x.sum(last_axes(x, shape.size()), true);
    return {x.clone(), none, none};
  }
  Tensor y;
  if (!x.numel() || !served(x, w) || !served(x, b) ||
      !Call(op<"layer_norm">()).in(x).in(w).in(b).set("normalized_shape", shape).set("eps", eps).make(y))
    return fall_back<aten::native_layer_norm>(x, shape, w, b, eps);
  const Axes axes = last_axes(x, shape.size());
  if (!at::GradMode::is_enabled()) {
    // Only a backward pass reads the statistics.
    Axes size(x.sizes().begin(), x.sizes().end());
    for (const int64_t i : axes) size[size_t(i)] = 1;
    const Tensor none = empty(size, x.scalar_type(), x.device().index());
    return {like(y, x), none, none};
  }
  const Tensor all = wide(x, w, b);
  return {like(y, x), all.mean(axes, true), all.var(axes, 0, true).add_(eps).rsqrt_()};
}
Three layer_norm_backward(const Tensor& grad, const Tensor& x, Ints shape, const Tensor& mean,
                          const Tensor& inverse_std, const OptionalTensor& w, const OptionalTensor& b,
                          std::array<bool, 3> mask) {
  if (!x.numel()) return fall_back<aten::native_layer_norm_backward>(grad, x, shape, mean, inverse_std, w, b, mask);
  const Axes inner = last_axes(x, shape.size());
  Axes outer;
  for (int64_t i = 0; i < x.dim() - int64_t(shape.size()); ++i) outer.push_back(i);
  const Tensor h = (x - mean) * inverse_std, gw = given(w) ? grad * *w : grad;
  Tensor dx, dw, db;
  if (mask[0]) dx = (gw - gw.mean(inner, true) - h * (gw * h).mean(inner, true)) * inverse_std;
  if (mask[1]) dw = outer.empty() ? grad * h : (grad * h).sum(outer);
  if (mask[2]) db = outer.empty() ? grad.clone() : grad.sum(outer);
  return {dx, dw, db};
}

// ---- RMS norm
std::tuple<Tensor, Tensor> rms_norm(const Tensor& x, Ints shape, const OptionalTensor& w,
                                    std::optional<double> eps) {
  Tensor y;
  const double e = eps                              ? *eps
                   : x.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                    : double(std::numeric_limits<float>::epsilon());
  if (!x.numel() || !is_real_float(x) ||
      !Call(op<"rms_norm">()).in(x).in(w).set("normalized_shape", shape).set("eps", e).make(y))
    return fall_back<aten::_fused_rms_norm>(x, shape, w, eps);
  return {y, x.square().mean(last_axes(x, shape.size()), true).add_(e).rsqrt_()};
}
std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad, const Tensor& x, Ints shape, const Tensor& inverse,
                                             const OptionalTensor& w, std::array<bool, 2> mask) {
  if (!x.numel()) return fall_back<aten::_fused_rms_norm_backward>(grad, x, shape, inverse, w, mask);
  const Axes inner = last_axes(x, shape.size());
  Axes outer;
  for (int64_t i = 0; i < x.dim() - int64_t(shape.size()); ++i) outer.push_back(i);
  const Tensor h = x * inverse, gw = given(w) ? grad * *w : grad;
  Tensor dx, dw;
  if (mask[0]) dx = (gw - h * (gw * h).mean(inner, true)) * inverse;
  if (mask[1] && given(w)) dw = outer.empty() ? grad * h : (grad * h).sum(outer);
  return {dx, dw};
}

// ---- group norm
Three group_norm(const Tensor& x, const OptionalTensor& w, const OptionalTensor& b, int64_t n, int64_t c,
                 int64_t hw, int64_t groups, double eps) {
  Tensor y;
  if (!x.numel() || !served(x, w) || !served(x, b) ||
      !Call(op<"group_norm">()).in(x).in(w).in(b).set("num_groups", groups).set("eps", eps).make(y))
    return fall_back<aten::native_group_norm>(x, w, b, n, c, hw, groups, eps);
  const Tensor rows = wide(x, w, b).reshape({n, groups, -1});
  return {like(y, x), rows.mean(-1), rows.var(at::OptionalIntArrayRef(-1), 0).add_(eps).rsqrt_()};
}
Three group_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& mean, const Tensor& inverse_std,
                          const OptionalTensor& w, int64_t n, int64_t c, int64_t hw, int64_t groups,
                          std::array<bool, 3> mask) {
  if (!x.numel())
    return fall_back<aten::native_group_norm_backward>(grad, x, mean, inverse_std, w, n, c, hw, groups, mask);
  const Tensor rows = x.reshape({n, groups, -1}), inverse = inverse_std.unsqueeze(-1);
  const Tensor h = (rows - mean.unsqueeze(-1)) * inverse;
  const Axes channels = all_axes_but(x, 1);
  Tensor dx, dw, db;
  if (mask[0]) {
    const Tensor gw = (given(w) ? grad * along_channels(*w, x) : grad).reshape({n, groups, -1});
    dx = ((gw - gw.mean(-1, true) - h * (gw * h).mean(-1, true)) * inverse).view(x.sizes());
  }
  if (mask[1]) dw = (grad * h.view(x.sizes())).sum(channels);
  if (mask[2]) db = grad.sum(channels);
  return {dx, dw, db};
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::native_batch_norm>(m, &batch_norm);
  implement<aten::_native_batch_norm_legit>(m, &batch_norm_legit);
  implement<aten::_native_batch_norm_legit_no_stats>(m, &batch_norm_legit_no_stats);
  implement<aten::native_batch_norm_backward>(m, &batch_norm_backward);
  implement<aten::native_layer_norm>(m, &layer_norm);
  implement<aten::native_layer_norm_backward>(m, &layer_norm_backward);
  implement<aten::_fused_rms_norm>(m, &rms_norm);
  implement<aten::_fused_rms_norm_backward>(m, &rms_norm_backward);
  implement<aten::native_group_norm>(m, &group_norm);
  implement<aten::native_group_norm_backward>(m, &group_norm_backward);
}
}  // namespace dovetail_torch
