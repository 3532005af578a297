// Losses and their gradients.
#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_backward_ops.h>
#include <ATen/ops/binary_cross_entropy_ops.h>
#include <ATen/ops/huber_loss_backward_ops.h>
#include <ATen/ops/huber_loss_ops.h>
#include <ATen/ops/mse_loss_backward_ops.h>
#include <ATen/ops/mse_loss_ops.h>
#include <ATen/ops/nll_loss2d_backward_ops.h>
#include <ATen/ops/nll_loss2d_forward_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <ATen/ops/smooth_l1_loss_backward_ops.h>
#include <ATen/ops/smooth_l1_loss_ops.h>
#include <ATen/ops/zeros.h>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;

Tensor reduced(const Tensor& loss, int64_t reduction) {
  return reduction == at::Reduction::Mean ? loss.mean() : reduction == at::Reduction::Sum ? loss.sum() : loss;
}
Tensor& give(const Tensor& loss, int64_t reduction, Tensor& out) {
  const Tensor r = reduced(loss, reduction);
  return store(r, out);
}
// The gradient by each element's loss.
Tensor spread(const Tensor& grad, const Tensor& x, int64_t reduction) {
  return reduction == at::Reduction::Mean ? grad / double(x.numel()) : grad;
}
bool plain(const Tensor& a, const Tensor& b) { return is_real_float(a) && a.scalar_type() == b.scalar_type(); }

// ---- negative log-likelihood; classes stand on axis 1, or 0 of a vector
struct Targets {
  Tensor index, kept, weight;  // with the class axis of size 1; weight 0 where a target is ignored
  int64_t axis;
};
Targets targets(const Tensor& x, const Tensor& target, const OptionalTensor& weight, int64_t ignored) {
  Targets t;
  t.axis = x.dim() == 1 ? 0 : 1;
  const Tensor at = (x.dim() == 1 ? target.reshape({1}) : target.unsqueeze(1)).to(at::kLong);
  t.kept = at.ne(ignored);
  t.index = select_by(t.kept, at, at.new_zeros({}));
  t.weight = given(weight) ? weight->take(t.index) * t.kept : t.kept.to(x.scalar_type());
  return t;
}
template <class Aten>
std::tuple<Tensor&, Tensor&> nll_forward(const Tensor& x, const Tensor& target, const OptionalTensor& weight,
                                         int64_t reduction, int64_t ignored, Tensor& out, Tensor& total) {
  if (!is_real_float(x) || !x.numel() || !target.numel())
    return fall_back<Aten>(x, target, weight, reduction, ignored, out, total);
  const Targets t = targets(x, target, weight, ignored);
  const Tensor loss = select_by(t.kept, x.gather(t.axis, t.index) * t.weight * -1, x.new_zeros({}));
  const Tensor sum_of_weights = t.weight.sum();
  fit(total, {});
  if (reduction == at::Reduction::None) {
    total.zero_();
    fit(out, target.sizes());
    return {out.copy_(loss.view(target.sizes())), total};
  }
  total.copy_(sum_of_weights);
  fit(out, {});
  out.copy_(reduction == at::Reduction::Mean ? loss.sum() / sum_of_weights : loss.sum());
  return {out, total};
}
template <class Aten>
Tensor& nll_backward(const Tensor& grad, const Tensor& x, const Tensor& target, const OptionalTensor& weight,
                     int64_t reduction, int64_t ignored, const Tensor& total, Tensor& out) {
  if (!is_real_float(x) || !x.numel() || !target.numel())
    return fall_back<Aten>(grad, x, target, weight, reduction, ignored, total, out);
  const Targets t = targets(x, target, weight, ignored);
  Tensor g = grad;
  if (reduction == at::Reduction::None) g = x.dim() == 1 ? grad.reshape({1}) : grad.unsqueeze(1);
  if (reduction == at::Reduction::Mean) g = g / total;
  fit(out, x.sizes());
  out.zero_();
  return out.scatter_(t.axis, t.index,
                      select_by(t.kept, (t.weight * g * -1).expand(t.index.sizes()), x.new_zeros({})));
}

// The form for images has no structured kernel.
std::tuple<Tensor, Tensor> nll2d_forward(const Tensor& x, const Tensor& target, const OptionalTensor& weight,
                                         int64_t reduction, int64_t ignored) {
  Tensor out = empty({0}, x.scalar_type(), x.device().index()),
         total = empty({0}, x.scalar_type(), x.device().index());
  nll_forward<aten::nll_loss2d_forward_output>(x, target, weight, reduction, ignored, out, total);
  return {out, total};
}
Tensor nll2d_backward(const Tensor& grad, const Tensor& x, const Tensor& target, const OptionalTensor& weight,
                      int64_t reduction, int64_t ignored, const Tensor& total) {
  Tensor out = empty(x.sizes(), x.scalar_type(), x.device().index());
  return nll_backward<aten::nll_loss2d_backward_grad_input>(grad, x, target, weight, reduction, ignored, total,
                                                            out);
}

// ---- regression
Tensor& mse_loss_out(const Tensor& x, const Tensor& y, int64_t reduction, Tensor& out) {
  if (!plain(x, y)) return fall_back<aten::mse_loss_out>(x, y, reduction, out);
  return give((x - y).square(), reduction, out);
}
Tensor& mse_loss_backward_out(const Tensor& grad, const Tensor& x, const Tensor& y, int64_t reduction,
                              Tensor& out) {
  const Tensor r = spread(grad, x, reduction) * (x - y) * 2;
  return store(r, out);
}
Tensor mse_loss_backward(const Tensor& grad, const Tensor& x, const Tensor& y, int64_t reduction) {
  return spread(grad, x, reduction) * (x - y) * 2;
}
// Quadratic within beta, linear beyond.
Tensor& smooth_l1_out(const Tensor& x, const Tensor& y, int64_t reduction, double beta, Tensor& out) {
  if (!plain(x, y)) return fall_back<aten::smooth_l1_loss_out>(x, y, reduction, beta, out);
  const Tensor z = (x - y).abs();
  return give(beta > 0 ? select_by(z.lt(beta), z * z * (0.5 / beta), z - 0.5 * beta) : z, reduction, out);
}
Tensor& smooth_l1_backward_out(const Tensor& grad, const Tensor& x, const Tensor& y, int64_t reduction, double beta,
                               Tensor& out) {
  if (!plain(x, y)) return fall_back<aten::smooth_l1_loss_backward_grad_input>(grad, x, y, reduction, beta, out);
  const Tensor z = x - y, slope = beta > 0 ? select_by(z.abs().lt(beta), z / beta, z.sign()) : z.sign();
  const Tensor r = spread(grad, x, reduction) * slope;
  return store(r, out);
}
Tensor huber_loss(const Tensor& x, const Tensor& y, int64_t reduction, double delta) {
  TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  if (!plain(x, y)) return fall_back<aten::huber_loss>(x, y, reduction, delta);
  const Tensor z = (x - y).abs();
  return reduced(select_by(z.le(delta), z * z * 0.5, (z - 0.5 * delta) * delta), reduction);
}
Tensor& huber_loss_backward_out(const Tensor& grad, const Tensor& x, const Tensor& y, int64_t reduction,
                                double delta, Tensor& out) {
  const Tensor r = spread(grad, x, reduction) * (x - y).clamp(-delta, delta);
  return store(r, out);
}

// ---- binary cross-entropy; logarithms are at least -100, as torch has them
Tensor binary_cross_entropy(const Tensor& x, const Tensor& y, const OptionalTensor& weight, int64_t reduction) {
  if (!plain(x, y) || !x.numel()) return fall_back<aten::binary_cross_entropy>(x, y, weight, reduction);
  TORCH_CHECK(x.ge(0).logical_and(x.le(1)).all().item().toBool(),
              "all elements of input should be between 0 and 1");
  Tensor loss = (y - 1) * (-x).log1p().clamp_min(-100) - y * x.log().clamp_min(-100);
  if (given(weight)) loss = loss * *weight;
  return reduced(loss, reduction);
}
Tensor binary_cross_entropy_backward(const Tensor& grad, const Tensor& x, const Tensor& y,
                                     const OptionalTensor& weight, int64_t reduction) {
  if (!plain(x, y) || !x.numel())
    return fall_back<aten::binary_cross_entropy_backward>(grad, x, y, weight, reduction);
  Tensor r = spread(grad, x, reduction) * (x - y) / ((1 - x) * x).clamp_min(1e-12);
  return given(weight) ? r * *weight : r;
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::nll_loss_forward_output>(m, &nll_forward<aten::nll_loss_forward_output>);
  implement<aten::nll_loss_backward_grad_input>(m, &nll_backward<aten::nll_loss_backward_grad_input>);
  implement<aten::nll_loss2d_forward_output>(m, &nll_forward<aten::nll_loss2d_forward_output>);
  implement<aten::nll_loss2d_backward_grad_input>(m, &nll_backward<aten::nll_loss2d_backward_grad_input>);
  implement<aten::nll_loss2d_forward>(m, &nll2d_forward);
  implement<aten::nll_loss2d_backward>(m, &nll2d_backward);
  implement<aten::mse_loss_out>(m, &mse_loss_out);
  implement<aten::mse_loss_backward_grad_input>(m, &mse_loss_backward_out);
  implement<aten::mse_loss_backward>(m, &mse_loss_backward);
  implement<aten::smooth_l1_loss_out>(m, &smooth_l1_out);
  implement<aten::smooth_l1_loss_backward_grad_input>(m, &smooth_l1_backward_out);
  implement<aten::huber_loss>(m, &huber_loss);
  implement<aten::huber_loss_backward_out>(m, &huber_loss_backward_out);
  implement<aten::binary_cross_entropy>(m, &binary_cross_entropy);
  implement<aten::binary_cross_entropy_backward>(m, &binary_cross_entropy_backward);
}
}  // namespace dovetail_torch
