// Padding with elements of the tensor: along each axis a selection, whose gradient adds to the selected elements.
#include <ATen/ops/reflection_pad1d_backward_ops.h>
#include <ATen/ops/reflection_pad1d_ops.h>
#include <ATen/ops/reflection_pad2d_backward_ops.h>
#include <ATen/ops/reflection_pad2d_ops.h>
#include <ATen/ops/reflection_pad3d_backward_ops.h>
#include <ATen/ops/reflection_pad3d_ops.h>
#include <ATen/ops/replication_pad1d_backward_ops.h>
#include <ATen/ops/replication_pad1d_ops.h>
#include <ATen/ops/replication_pad2d_backward_ops.h>
#include <ATen/ops/replication_pad2d_ops.h>
#include <ATen/ops/replication_pad3d_backward_ops.h>
#include <ATen/ops/replication_pad3d_ops.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;
using Ints = c10::IntArrayRef;
enum class Rule { reflect, replicate };

// pads: before and after, the last axis first.
Tensor selection(Rule rule, int64_t size, int64_t before, int64_t after, const Tensor& like) {
  std::vector<int64_t> index;
  for (int64_t i = -before; i < size + after; ++i) {
    const int64_t mirrored = i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
    index.push_back(rule == Rule::reflect ? mirrored : std::clamp<int64_t>(i, 0, size - 1));
  }
  return at::tensor(index, at::TensorOptions().dtype(at::kLong)).to(like.device());
}
bool fits(const Tensor& x, Rule rule, Ints pads) {
  for (size_t a = 0; a < pads.size() / 2; ++a) {
    const int64_t size = x.size(x.dim() - 1 - int64_t(a)), least = std::min(pads[2 * a], pads[2 * a + 1]);
    const int64_t most = std::max(pads[2 * a], pads[2 * a + 1]);
    if (least < 0 || (rule == Rule::reflect && most >= size)) return false;  // a cut, or torch's error
  }
  return x.numel() && !x.is_complex();
}
Tensor padded(Tensor x, Rule rule, Ints pads) {
  for (size_t a = 0; a < pads.size() / 2; ++a) {
    const int64_t axis = x.dim() - 1 - int64_t(a);
    x = x.index_select(axis, selection(rule, x.size(axis), pads[2 * a], pads[2 * a + 1], x));
  }
  return x;
}
Tensor padded_gradient(Tensor grad, const Tensor& x, Rule rule, Ints pads) {
  for (size_t a = 0; a < pads.size() / 2; ++a) {
    const int64_t axis = grad.dim() - 1 - int64_t(a);
    Axes size(grad.sizes().begin(), grad.sizes().end());
    size[size_t(axis)] = x.size(axis);
    grad = grad.new_zeros(size).index_add_(axis, selection(rule, x.size(axis), pads[2 * a], pads[2 * a + 1], grad),
                                           grad);
  }
  return grad;
}

template <class Aten, Rule rule>
Tensor& pad_out(const Tensor& x, Ints pads, Tensor& out) {
  if (!x.numel() && out.numel() == 0) return out;
  if (!fits(x, rule, pads)) return fall_back<Aten>(x, pads, out);
  return store(padded(x, rule, pads), out);
}
template <class Aten, Rule rule>
Tensor pad(const Tensor& x, Ints pads) {
  return fits(x, rule, pads) ? padded(x, rule, pads) : fall_back<Aten>(x, pads);
}
template <class Aten, Rule rule>
Tensor& pad_backward_out(const Tensor& grad, const Tensor& x, Ints pads, Tensor& out) {
  if (!fits(x, rule, pads)) return fall_back<Aten>(grad, x, pads, out);
  return store(padded_gradient(grad, x, rule, pads), out);
}
template <class Aten, Rule rule>
Tensor pad_backward(const Tensor& grad, const Tensor& x, Ints pads) {
  return fits(x, rule, pads) ? padded_gradient(grad, x, rule, pads) : fall_back<Aten>(grad, x, pads);
}
}  // namespace

#define DOVETAIL_PAD(name, rule)                                    \
  implement<aten::name##_out>(m, &pad_out<aten::name##_out, rule>); \
  implement<aten::name##_backward_grad_input>(m, &pad_backward_out<aten::name##_backward_grad_input, rule>)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  DOVETAIL_PAD(reflection_pad1d, Rule::reflect);
  DOVETAIL_PAD(reflection_pad2d, Rule::reflect);
  DOVETAIL_PAD(reflection_pad3d, Rule::reflect);
  DOVETAIL_PAD(replication_pad1d, Rule::replicate);
  DOVETAIL_PAD(replication_pad2d, Rule::replicate);
  DOVETAIL_PAD(replication_pad3d, Rule::replicate);
  // These have no structured form.
  implement<aten::reflection_pad2d>(m, &pad<aten::reflection_pad2d, Rule::reflect>);
  implement<aten::reflection_pad2d_backward>(m, &pad_backward<aten::reflection_pad2d_backward, Rule::reflect>);
  implement<aten::replication_pad2d_backward>(m, &pad_backward<aten::replication_pad2d_backward, Rule::replicate>);
  implement<aten::replication_pad3d_backward>(m, &pad_backward<aten::replication_pad3d_backward, Rule::replicate>);
}
}  // namespace dovetail_torch
