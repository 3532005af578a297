// Convolutions and their gradients, in one to three dimensions.
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/convolution_backward_overrideable_ops.h>
#include <ATen/ops/convolution_ops.h>
#include <ATen/ops/convolution_overrideable_ops.h>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;
using Ints = c10::IntArrayRef;

template <Name one, Name two, Name three>
const dvr_op* by_rank(const Tensor& x) {
  switch (x.dim()) {
    case 3: return op<one>();
    case 4: return op<two>();
    case 5: return op<three>();
    default: return nullptr;
  }
}
const dvr_op* convolution_of(const Tensor& x) { return by_rank<"conv1d", "conv2d", "conv3d">(x); }
const dvr_op* transposed_of(const Tensor& x) {
  return by_rank<"conv_transpose1d", "conv_transpose2d", "conv_transpose3d">(x);
}

struct Geometry {
  Ints stride, padding, dilation;
  int64_t groups;
  Call& set(Call& call) const {
    return call.set("stride", stride).set("padding", padding).set("dilation", dilation).set("groups", groups);
  }
};

Tensor convolution(const Tensor& x, const Tensor& w, const OptionalTensor& bias, Ints stride, Ints padding,
                   Ints dilation, bool transposed, Ints output_padding, int64_t groups) {
  Tensor r;
  if (x.scalar_type() == w.scalar_type() && x.numel()) {
    Call call(transposed ? transposed_of(x) : convolution_of(x));
    call.in(x).in(w).in(bias);
    Geometry{stride, padding, dilation, groups}.set(call);
    if (transposed) call.set("output_padding", output_padding);
    if (call.make(r)) return r;
  }
  return fall_back<aten::convolution>(x, w, bias, stride, padding, dilation, transposed, output_padding, groups);
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad, const Tensor& x, const Tensor& w,
                                                        Ints stride, Ints padding, Ints dilation, bool transposed,
                                                        Ints output_padding, int64_t groups,
                                                        std::array<bool, 3> mask) {
  const Geometry geometry{stride, padding, dilation, groups};
  const bool fits =
      x.scalar_type() == w.scalar_type() && x.scalar_type() == grad.scalar_type() && x.numel() && grad.numel();
  Tensor dx, dw, db;
  bool served = fits;
  if (served && mask[0]) {
    Call call(transposed ? convolution_of(x) : op<"conv_grad_input">());
    if (transposed) geometry.set(call.in(grad).in(w).absent());
    else geometry.set(call.in(w).in(grad)).set("input_size", x.sizes());
    served = call.make(dx);
  }
  if (served && mask[1]) {
    // The transposed convolution is the adjoint of a convolution that takes its result for its operand.
    Call call(op<"conv_grad_weight">());
    geometry.set(call.in(transposed ? grad : x).in(transposed ? x : grad)).set("weight_size", w.sizes());
    served = call.make(dw);
  }
  if (!served) {
    const Axes bias_size{transposed ? w.size(1) * groups : w.size(0)};
    return fall_back<aten::convolution_backward>(grad, x, w, Ints(bias_size), stride, padding, dilation, transposed,
                                                 output_padding, groups, mask);
  }
  if (mask[2]) {
    Axes axes{0};
    for (int64_t i = 2; i < grad.dim(); ++i) axes.push_back(i);
    db = grad.sum(axes);
  }
  return {dx, dw, db};
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::convolution_overrideable>(m, &convolution);
  implement<aten::convolution_backward_overrideable>(m, &convolution_backward);
}
}  // namespace dovetail_torch
