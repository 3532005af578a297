// Resampling: along each axis a result is a weighted sum of a few elements (taps), its gradient adds to the same
// ones.
#include <ATen/ops/_upsample_nearest_exact1d_backward_ops.h>
#include <ATen/ops/_upsample_nearest_exact1d_ops.h>
#include <ATen/ops/_upsample_nearest_exact2d_backward_ops.h>
#include <ATen/ops/_upsample_nearest_exact2d_ops.h>
#include <ATen/ops/_upsample_nearest_exact3d_backward_ops.h>
#include <ATen/ops/_upsample_nearest_exact3d_ops.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bicubic2d_backward_ops.h>
#include <ATen/ops/upsample_bicubic2d_ops.h>
#include <ATen/ops/upsample_bilinear2d_backward_ops.h>
#include <ATen/ops/upsample_bilinear2d_ops.h>
#include <ATen/ops/upsample_linear1d_backward_ops.h>
#include <ATen/ops/upsample_linear1d_ops.h>
#include <ATen/ops/upsample_nearest1d_backward_ops.h>
#include <ATen/ops/upsample_nearest1d_ops.h>
#include <ATen/ops/upsample_nearest2d_backward_ops.h>
#include <ATen/ops/upsample_nearest2d_ops.h>
#include <ATen/ops/upsample_nearest3d_backward_ops.h>
#include <ATen/ops/upsample_nearest3d_ops.h>
#include <ATen/ops/upsample_trilinear3d_backward_ops.h>
#include <ATen/ops/upsample_trilinear3d_ops.h>

#include <algorithm>
#include <cmath>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;
using Ints = c10::IntArrayRef;
using Scale = std::optional<double>;

enum class Rule { nearest, nearest_exact, linear, cubic };
struct Tap {
  std::vector<int64_t> index;
  std::vector<double> weight;  // empty: 1
};

// Where the centre of result element i lies in the source.
double place(Rule rule, int64_t i, int64_t from, int64_t to, bool align_corners, const Scale& scale) {
  if (rule == Rule::linear || rule == Rule::cubic) {
    if (align_corners) return to > 1 ? double(i) * double(from - 1) / double(to - 1) : 0;
    const double x = (double(i) + 0.5) * (scale && *scale > 0 ? 1 / *scale : double(from) / double(to)) - 0.5;
    return rule == Rule::linear ? std::max(x, 0.) : x;
  }
  // Nearest is computed in float, as torch has it: the rounding decides which element is the nearest.
  const float step = scale && *scale > 0 ? float(1 / *scale) : float(from) / float(to);
  return rule == Rule::nearest ? std::floor(float(i) * step) : std::floor((float(i) + 0.5f) * step);
}
double cubic_near(double x) { return ((-0.75 + 2) * x - (-0.75 + 3)) * x * x + 1; }
double cubic_far(double x) { return ((-0.75 * x + 5 * 0.75) * x - 8 * 0.75) * x + 4 * 0.75; }

std::vector<Tap> taps_of(Rule rule, int64_t from, int64_t to, bool align_corners, const Scale& scale) {
  const size_t n = rule == Rule::cubic ? 4 : rule == Rule::linear ? 2 : 1;
  std::vector<Tap> taps(n);
  for (int64_t i = 0; i < to; ++i) {
    const double x = place(rule, i, from, to, align_corners, scale);
    const auto first = int64_t(std::floor(x));
    const double rest = x - double(first);
    const double weights[2][4] = {
        {1 - rest, rest, 0, 0}, {cubic_far(rest + 1), cubic_near(rest), cubic_near(1 - rest), cubic_far(2 - rest)}};
    for (size_t k = 0; k < n; ++k) {
      const int64_t offset = int64_t(k) - (rule == Rule::cubic ? 1 : 0);
      taps[k].index.push_back(std::clamp<int64_t>(first + offset, 0, from - 1));
      if (n > 1) taps[k].weight.push_back(weights[rule == Rule::cubic][k]);
    }
  }
  return taps;
}
Tensor index_tensor(const Tap& t, const Tensor& like) {
  return at::tensor(t.index, at::TensorOptions().dtype(at::kLong)).to(like.device());
}
// The weights, ready to be multiplied along the axis.
Tensor weight_tensor(const Tap& t, const Tensor& like, int64_t axis) {
  Axes shape(size_t(like.dim()), 1);
  shape[size_t(axis)] = int64_t(t.weight.size());
  return at::tensor(t.weight, at::TensorOptions().dtype(at::kDouble))
      .to(like.scalar_type())
      .to(like.device())
      .view(shape);
}

Tensor resample(Tensor x, Rule rule, Ints size, bool align_corners, c10::ArrayRef<Scale> scales) {
  for (size_t a = 0; a < size.size(); ++a) {
    const int64_t axis = int64_t(a) + 2;
    if (x.size(axis) == size[a] && rule != Rule::cubic) continue;  // every element is its own nearest one
    Tensor sum;
    for (const Tap& t : taps_of(rule, x.size(axis), size[a], align_corners, scales[a])) {
      Tensor part = x.index_select(axis, index_tensor(t, x));
      if (!t.weight.empty()) part = part * weight_tensor(t, part, axis);
      sum = sum.defined() ? sum + part : part;
    }
    x = sum;
  }
  return x;
}
Tensor resample_gradient(Tensor grad, Rule rule, Ints input_size, bool align_corners, c10::ArrayRef<Scale> scales) {
  for (size_t a = 0; a + 2 < input_size.size(); ++a) {
    const int64_t axis = int64_t(a) + 2, from = input_size[a + 2];
    if (grad.size(axis) == from && rule != Rule::cubic) continue;
    Axes size(grad.sizes().begin(), grad.sizes().end());
    size[size_t(axis)] = from;
    Tensor sum = grad.new_zeros(size);
    for (const Tap& t : taps_of(rule, from, grad.size(axis), align_corners, scales[a]))
      sum.index_add_(axis, index_tensor(t, grad), t.weight.empty() ? grad : grad * weight_tensor(t, grad, axis));
    grad = sum;
  }
  return grad;
}
bool fits(const Tensor& x) { return is_real_float(x) && x.numel(); }

// torch's signatures differ in the number of scales and in align_corners.
template <class Aten, Rule rule, class... S>
Tensor& nearest_out(const Tensor& x, Ints size, S... scales, Tensor& out) {
  const Scale all[] = {scales...};
  return fits(x) ? store(resample(x, rule, size, false, all), out) : fall_back<Aten>(x, size, scales..., out);
}
template <class Aten, Rule rule, class... S>
Tensor& smooth_out(const Tensor& x, Ints size, bool align_corners, S... scales, Tensor& out) {
  const Scale all[] = {scales...};
  return fits(x) ? store(resample(x, rule, size, align_corners, all), out)
                 : fall_back<Aten>(x, size, align_corners, scales..., out);
}
template <class Aten, Rule rule, class... S>
Tensor& nearest_backward_out(const Tensor& grad, Ints size, Ints input_size, S... scales, Tensor& out) {
  const Scale all[] = {scales...};
  return fits(grad) ? store(resample_gradient(grad, rule, input_size, false, all), out)
                    : fall_back<Aten>(grad, size, input_size, scales..., out);
}
template <class Aten, Rule rule, class... S>
Tensor& smooth_backward_out(const Tensor& grad, Ints size, Ints input_size, bool align_corners, S... scales,
                            Tensor& out) {
  const Scale all[] = {scales...};
  return fits(grad) ? store(resample_gradient(grad, rule, input_size, align_corners, all), out)
                    : fall_back<Aten>(grad, size, input_size, align_corners, scales..., out);
}
}  // namespace

#define DOVETAIL_NEAREST(name, rule, ...)                                            \
  implement<aten::name##_out>(m, &nearest_out<aten::name##_out, rule, __VA_ARGS__>); \
  implement<aten::name##_backward_grad_input>(                                       \
      m, &nearest_backward_out<aten::name##_backward_grad_input, rule, __VA_ARGS__>)
#define DOVETAIL_SMOOTH(name, rule, ...)                                            \
  implement<aten::name##_out>(m, &smooth_out<aten::name##_out, rule, __VA_ARGS__>); \
  implement<aten::name##_backward_grad_input>(                                      \
      m, &smooth_backward_out<aten::name##_backward_grad_input, rule, __VA_ARGS__>)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  DOVETAIL_NEAREST(upsample_nearest1d, Rule::nearest, Scale);
  DOVETAIL_NEAREST(upsample_nearest2d, Rule::nearest, Scale, Scale);
  DOVETAIL_NEAREST(upsample_nearest3d, Rule::nearest, Scale, Scale, Scale);
  DOVETAIL_NEAREST(_upsample_nearest_exact1d, Rule::nearest_exact, Scale);
  DOVETAIL_NEAREST(_upsample_nearest_exact2d, Rule::nearest_exact, Scale, Scale);
  DOVETAIL_NEAREST(_upsample_nearest_exact3d, Rule::nearest_exact, Scale, Scale, Scale);
  DOVETAIL_SMOOTH(upsample_linear1d, Rule::linear, Scale);
  DOVETAIL_SMOOTH(upsample_bilinear2d, Rule::linear, Scale, Scale);
  DOVETAIL_SMOOTH(upsample_trilinear3d, Rule::linear, Scale, Scale, Scale);
  DOVETAIL_SMOOTH(upsample_bicubic2d, Rule::cubic, Scale, Scale);
}
}  // namespace dovetail_torch
