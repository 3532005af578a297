// Pooling. Indices of a maximum and adaptive windows are composed of other ops.
#include <ATen/ops/_adaptive_avg_pool2d_backward_ops.h>
#include <ATen/ops/_adaptive_avg_pool2d_ops.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool2d_backward_ops.h>
#include <ATen/ops/avg_pool2d_ops.h>
#include <ATen/ops/avg_pool3d_backward_ops.h>
#include <ATen/ops/avg_pool3d_ops.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/max_pool2d_native.h>
#include <ATen/ops/max_pool2d_ops.h>
#include <ATen/ops/max_pool2d_with_indices_backward_ops.h>
#include <ATen/ops/max_pool2d_with_indices_ops.h>
#include <ATen/ops/max_pool3d_with_indices_backward_ops.h>
#include <ATen/ops/max_pool3d_with_indices_ops.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;
using Ints = c10::IntArrayRef;

// One number stands for every axis.
Axes expanded(Ints values, size_t n) {
  return values.size() == 1 ? Axes(n, values[0]) : Axes(values.begin(), values.end());
}

struct Windows {
  Axes kernel, stride, padding, dilation;
  Windows(size_t n, Ints k, Ints s, Ints p, Ints d = {})
      : kernel(expanded(k, n)),
        stride(s.empty() ? kernel : expanded(s, n)),
        padding(expanded(p, n)),
        dilation(d.empty() ? Axes(n, 1) : expanded(d, n)) {}
  Call& set(Call& call) const {
    return call.set("kernel_size", kernel).set("stride", stride).set("padding", padding);
  }
};
// (N, C, spatial...), also of an image without N.
Tensor batched(const Tensor& x, size_t n) { return size_t(x.dim()) == n + 1 ? x.unsqueeze(0) : x; }

// ---- averages
template <Name name>
bool average(const Tensor& x, size_t n, const Windows& w, bool ceil, bool count_padding,
             std::optional<int64_t> divisor, Tensor& out) {
  Tensor r;
  if (ceil || !x.numel()) return false;
  Call call(op<name>());
  if (!w.set(call.in(batched(x, n))).set("count_include_pad", count_padding || divisor).make(r)) return false;
  if (divisor) r.mul_(double(c10::multiply_integers(w.kernel)) / double(*divisor));
  if (r.numel() != out.numel()) return false;
  out.copy_(r.view(out.sizes()));
  return true;
}
bool average_gradient(const Tensor& grad, const Tensor& x, size_t n, const Windows& w, bool ceil,
                      bool count_padding, std::optional<int64_t> divisor, Tensor& out) {
  Tensor r;
  if (ceil || !x.numel()) return false;
  Call call(op<"avg_pool_grad">());
  const Tensor whole = batched(x, n);
  if (!w.set(call.in(batched(grad, n)))
           .set("input_size", whole.sizes())
           .set("count_include_pad", count_padding || divisor)
           .make(r))
    return false;
  if (divisor) r.mul_(double(c10::multiply_integers(w.kernel)) / double(*divisor));
  store(r.view(x.sizes()), out);
  return true;
}
template <class Aten, Name name, size_t n>
Tensor& avg_pool_out(const Tensor& x, Ints k, Ints s, Ints p, bool ceil, bool count_padding,
                     std::optional<int64_t> divisor, Tensor& out) {
  if (average<name>(x, n, Windows(n, k, s, p), ceil, count_padding, divisor, out)) return out;
  return fall_back<Aten>(x, k, s, p, ceil, count_padding, divisor, out);
}
template <class Aten, size_t n>
Tensor& avg_pool_backward(const Tensor& grad, const Tensor& x, Ints k, Ints s, Ints p, bool ceil,
                          bool count_padding, std::optional<int64_t> divisor, Tensor& out) {
  if (average_gradient(grad, x, n, Windows(n, k, s, p), ceil, count_padding, divisor, out)) return out;
  return fall_back<Aten>(grad, x, k, s, p, ceil, count_padding, divisor, out);
}

// Windows of equal sizes alone.
bool even_windows(const Tensor& x, Ints size, Axes& kernel) {
  for (size_t i = 0; i < size.size(); ++i) {
    const int64_t from = x.size(x.dim() - int64_t(size.size() - i));
    if (!size[i] || from % size[i]) return false;
    kernel.push_back(from / size[i]);
  }
  return x.numel() != 0;
}
Tensor adaptive_avg_pool2d(const Tensor& x, Ints size) {
  Axes kernel;
  if (even_windows(x, size, kernel)) return aten::avg_pool2d::call(x, kernel, kernel, Axes{0, 0}, false, true, {});
  return fall_back<aten::_adaptive_avg_pool2d>(x, size);
}
Tensor adaptive_avg_pool2d_backward(const Tensor& grad, const Tensor& x) {
  Axes kernel;
  if (even_windows(x, grad.sizes().slice(size_t(grad.dim() - 2)), kernel))
    return aten::avg_pool2d_backward::call(grad, x, kernel, kernel, Axes{0, 0}, false, true, {});
  return fall_back<aten::_adaptive_avg_pool2d_backward>(grad, x);
}

// ---- maxima
// The windows of x as its last n axes, a view of x with padding.
Tensor windows_of(const Tensor& x, const Windows& w, Ints out_size) {
  const size_t n = w.kernel.size();
  Axes pads;
  bool padded = false;
  for (size_t i = n;
       i-- > 0;) {  // the last axis first; a window that begins inside may end behind the padding (ceil_mode)
    const int64_t size = x.size(int64_t(2 + i)), places = out_size[out_size.size() - n + i];
    const int64_t end = (places - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1;
    pads.push_back(w.padding[i]);
    pads.push_back(std::max<int64_t>(end - size - w.padding[i], 0));
    padded = padded || pads[pads.size() - 1] || pads[pads.size() - 2];
  }
  const Tensor p = padded ? at::constant_pad_nd(x, pads, -std::numeric_limits<double>::infinity()) : x.contiguous();
  Axes size{p.size(0), p.size(1)}, stride{p.stride(0), p.stride(1)};
  for (size_t i = 0; i < n; ++i) {
    size.push_back(out_size[out_size.size() - n + i]);
    stride.push_back(p.stride(int64_t(2 + i)) * w.stride[i]);
  }
  for (size_t i = 0; i < n; ++i) {
    size.push_back(w.kernel[i]);
    stride.push_back(p.stride(int64_t(2 + i)) * w.dilation[i]);
  }
  return p.as_strided(size, stride, p.storage_offset());
}
// From places in windows to places in the flat spatial axes of x.
Tensor flat_places(const Tensor& x, const Windows& w, Tensor place) {
  const int64_t n = int64_t(w.kernel.size());
  Tensor flat;
  std::vector<int64_t> in_window(size_t(n), 1);
  for (int64_t i = n - 2; i >= 0; --i) in_window[size_t(i)] = in_window[size_t(i + 1)] * w.kernel[size_t(i + 1)];
  for (int64_t i = 0; i < n; ++i) {
    const size_t a = size_t(i);
    const Tensor step = place.div(in_window[a], "floor");
    place = place - step * in_window[a];
    Axes shape(size_t(n), 1);
    shape[a] = place.size(2 + i);
    const Tensor first = (at::arange(place.size(2 + i), place.options()) * w.stride[a] - w.padding[a]).view(shape);
    const Tensor at_axis = first + step * w.dilation[a];
    flat = flat.defined() ? flat * x.size(2 + i) + at_axis : at_axis;
  }
  return flat;
}
template <class Aten, size_t n>
std::tuple<Tensor&, Tensor&> max_pool_out(const Tensor& x, Ints k, Ints s, Ints p, Ints d, bool ceil, Tensor& out,
                                          Tensor& indices) {
  const Windows w(n, k, s, p, d);
  if (!is_real_float(x) || !x.numel() || !out.numel() || size_t(x.dim()) < n + 1)
    return fall_back<Aten>(x, k, s, p, d, ceil, out, indices);
  const Tensor whole = batched(x, n);
  const Tensor flat = windows_of(whole, w, out.sizes()).flatten(int64_t(2 + n));
  const Tensor place = flat.argmax(-1);
  out.copy_(flat.gather(-1, place.unsqueeze(-1)).view(out.sizes()));
  indices.copy_(flat_places(whole, w, place).view(indices.sizes()));
  return {out, indices};
}
// The structured form of three dimensions is not: torch has no shapes of its results.
std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& x, Ints k, Ints s, Ints p, Ints d, bool ceil) {
  const Windows w(3, k, s, p, d);
  const bool fits = is_real_float(x) && x.numel() && (x.dim() == 4 || x.dim() == 5) && !ceil;
  Tensor values;
  Call call(op<"max_pool3d">());
  if (!fits || !w.set(call.in(batched(x, 3))).set("dilation", w.dilation).make(values))
    return fall_back<aten::max_pool3d_with_indices>(x, k, s, p, d, ceil);
  Axes size(x.sizes().begin(), x.sizes().end() - 3);
  for (int64_t i = 2; i < 5; ++i) size.push_back(values.size(i));
  Tensor out = empty(size, x.scalar_type(), x.device().index()),
         indices = empty(size, at::kLong, x.device().index());
  max_pool_out<aten::max_pool3d_with_indices_out, 3>(x, k, s, p, d, ceil, out, indices);
  return {out, indices};
}
template <size_t n>
Tensor max_pool_gradient(const Tensor& grad, const Tensor& x, const Tensor& indices) {
  const int64_t first = x.dim() - int64_t(n);
  const Tensor zero = at::zeros({x.numel() / c10::multiply_integers(x.sizes().slice(size_t(first))),
                                 c10::multiply_integers(x.sizes().slice(size_t(first)))},
                                x.options());
  return zero.scatter_add(1, indices.reshape({zero.size(0), -1}), grad.reshape({zero.size(0), -1})).view(x.sizes());
}
Tensor& max_pool2d_backward(const Tensor& grad, const Tensor& x, Ints k, Ints s, Ints p, Ints d, bool ceil,
                            const Tensor& indices, Tensor& out) {
  if (!x.numel() || !grad.numel())
    return fall_back<aten::max_pool2d_with_indices_backward_grad_input>(grad, x, k, s, p, d, ceil, indices, out);
  return store(max_pool_gradient<2>(grad, x, indices), out);
}
Tensor max_pool3d_backward(const Tensor& grad, const Tensor& x, Ints k, Ints s, Ints p, Ints d, bool ceil,
                           const Tensor& indices) {
  if (!x.numel() || !grad.numel())
    return fall_back<aten::max_pool3d_with_indices_backward>(grad, x, k, s, p, d, ceil, indices);
  return max_pool_gradient<3>(grad, x, indices);
}

// A composite of torch, by way of the indices; where no gradient needs them, the op itself.
Tensor max_pool2d(const Tensor& x, Ints k, Ints s, Ints p, Ints d, bool ceil) {
  if (!ceil && x.dim() == 4 && x.numel() && is_real_float(x) &&
      !(at::GradMode::is_enabled() && x.requires_grad())) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const Windows w(2, k, s, p, d);
    Tensor r;
    Call call(op<"max_pool2d">());
    if (w.set(call.in(x)).set("dilation", w.dilation).make(r)) return r;
  }
  return at::native::max_pool2d(x, k, s, p, d, ceil);
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::avg_pool2d_out>(m, &avg_pool_out<aten::avg_pool2d_out, "avg_pool2d", 2>);
  implement<aten::avg_pool3d_out>(m, &avg_pool_out<aten::avg_pool3d_out, "avg_pool3d", 3>);
  implement<aten::avg_pool2d_backward_grad_input>(m, &avg_pool_backward<aten::avg_pool2d_backward_grad_input, 2>);
  implement<aten::avg_pool3d_backward_grad_input>(m, &avg_pool_backward<aten::avg_pool3d_backward_grad_input, 3>);
  implement<aten::_adaptive_avg_pool2d>(m, &adaptive_avg_pool2d);
  implement<aten::_adaptive_avg_pool2d_backward>(m, &adaptive_avg_pool2d_backward);
  implement<aten::max_pool2d_with_indices_out>(m, &max_pool_out<aten::max_pool2d_with_indices_out, 2>);
  implement<aten::max_pool2d_with_indices_backward_grad_input>(m, &max_pool2d_backward);
  implement<aten::max_pool3d_with_indices>(m, &max_pool3d_with_indices);
  implement<aten::max_pool3d_with_indices_backward>(m, &max_pool3d_backward);
  implement<aten::max_pool2d>(m, &max_pool2d);
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { implement<aten::max_pool2d>(m, &max_pool2d); }
}  // namespace dovetail_torch
