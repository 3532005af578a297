// One or two spatial axes over which a window moves, for convolutions and their gradients.
#pragma once
#include "side.hpp"
#include "simd/gemm.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
struct Windows {
  Side h, w;
  int64_t images, groups, channels, outputs;  // channels and outputs of a group
  int64_t image_stride, channel_stride, taps, pixels;

  // The attributes from `first` on are stride, padding, dilation, groups.
  Windows(const DLTensor& x, const DLTensor& weight, const DLTensor& y, const dvt::Attrs& a, uint32_t first) {
    groups = a.i64(first + 3, 1);
    images = x.shape[0], channels = weight.shape[1], outputs = weight.shape[0] / groups;
    image_stride = x.strides[0], channel_stride = x.strides[1];
    const dvt::Ints step = a.i64s(first), padding = a.i64s(first + 1), dilation = a.i64s(first + 2);
    const auto side = [&](uint32_t i) {
      Side s;
      s.in = x.shape[i + 2], s.out = y.shape[i + 2], s.stride = x.strides[i + 2], s.kernel = weight.shape[i + 2];
      s.step = step[i], s.padding = padding[i], s.dilation = dilation[i];
      return s.prepare(), s;
    };
    if (x.ndim == 4) h = side(0);
    w = side(uint32_t(x.ndim - 3));
    taps = channels * h.kernel * w.kernel, pixels = h.out * w.out;
  }

  // Where windows move by 1: the windows of the gradient, for the convolution with flipped weights that gives x's.
  Windows of_gradient() const {
    Windows to = *this;
    for (Side Windows::* axis : {&Windows::h, &Windows::w}) {
      Side& s = to.*axis;
      s.in = (this->*axis).out, s.out = (this->*axis).in;
      s.padding = s.dilation * (s.kernel - 1) - s.padding;
    }
    to.channels = outputs, to.outputs = channels;
    to.w.stride = 1, to.h.stride = to.w.in, to.channel_stride = to.h.in * to.w.in;
    to.image_stride = groups * to.channels * to.channel_stride;
    to.taps = to.channels * h.kernel * w.kernel, to.pixels = to.h.out * to.w.out;
    return to.h.prepare(), to.w.prepare(), to;
  }
};

// n pixels, `step` apart.
template <class In>
DOVETAIL_CPU_INLINE void copy_line(const In* x, int64_t step, int64_t n, gemm::Accumulator<In>* out) {
  if (step == 2) {  // by vectors: the compiler knows the step
    for (int64_t q = 0; q < n; ++q) out[q] = gemm::load(x[q * 2]);
    return;
  }
  if (step != 1) {
    for (int64_t q = 0; q < n; ++q) out[q] = gemm::load(x[q * step]);
    return;
  }
  constexpr int64_t P = gemm::panel<gemm::Accumulator<In>>, W = 4;
  int64_t q = 0;
  for (; q + P <= n; q += P)
    for (int i = 0; i < P; ++i) out[q + i] = gemm::load(x[q + i]);
  if (q == n) return;
  if (n < W) {
    for (; q < n; ++q) out[q] = gemm::load(x[q]);
    return;
  }
  for (;; q += W) {  // the last ones overlap
    if (q > n - W) q = n - W;
    if constexpr (std::is_same_v<In, gemm::Accumulator<In>>) std::memcpy(out + q, x + q, W * sizeof(In));
    else
      for (int i = 0; i < W; ++i) out[q + i] = gemm::load(x[q + i]);
    if (q == n - W) return;
  }
}
// A row of `n` pixels from `x`, zero before a and from b on.
template <class In>
DOVETAIL_CPU_INLINE void copy_line(const In* x, int64_t step, int64_t a, int64_t b, int64_t n,
                                   gemm::Accumulator<In>* out) {
  for (int64_t q = 0; q < a; ++q) out[q] = 0;
  if (a < b) copy_line(x + a * step, step, b - a, out + a);
  for (int64_t q = b; q < n; ++q) out[q] = 0;
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
