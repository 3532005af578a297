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

// n elements by vectors of W, of which the last two may overlap, or if there are fewer, by shorter ones.
template <int64_t W, class T>
DOVETAIL_CPU_INLINE void copy_elements(const T* x, int64_t n, T* out) {
  if constexpr (W > 1) {
    if (n < W) return copy_elements<W / 2>(x, n, out);
    typedef T Vector __attribute__((vector_size(W * sizeof(T))));  // a memcpy of 32 bytes takes two moves
    const auto copy = [&](int64_t q) {
      Vector v;
      std::memcpy(&v, x + q, sizeof v), std::memcpy(out + q, &v, sizeof v);
    };
    for (int64_t q = 0; q + W < n; q += W) copy(q);
    copy(n - W);
  } else if (n) {
    *out = *x;
  }
}
// The same for every second element. None after the last one is read.
template <int N, class T>
DOVETAIL_CPU_INLINE void copy_even(const T* x, int64_t n, T* out) {
  typedef T Vector __attribute__((vector_size(N * sizeof(T))));
  static_assert(N == 8 || N == 4);
  if (n < N) {
    if constexpr (N == 8) return copy_even<4>(x, n, out);
    for (int64_t q = 0; q < n; ++q) out[q] = x[q * 2];
    return;
  }
  for (int64_t q = 0; q < n; q += N) {
    q = least(q, n - N);
    Vector a, b;
    std::memcpy(&a, x + q * 2, sizeof a), std::memcpy(&b, x + q * 2 + N - 1, sizeof b);
    if constexpr (N == 8) a = __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
    else a = __builtin_shufflevector(a, b, 0, 2, 5, 7);
    std::memcpy(out + q, &a, sizeof a);
  }
}
// n pixels, `step` apart.
template <class In>
DOVETAIL_CPU_INLINE void copy_line(const In* x, int64_t step, int64_t n, gemm::Accumulator<In>* out) {
  using T = gemm::Accumulator<In>;
  if constexpr (std::is_same_v<In, T>) {
    if (step == 1) return copy_elements<gemm::width<T>>(x, n, out);
    if (step == 2) return copy_even<8>(x, n, out);
  } else if (step == 1) {
    constexpr int64_t P = gemm::panel<T>;
    int64_t q = 0;
    for (; q + P <= n; q += P)
      for (int i = 0; i < P; ++i) out[q + i] = gemm::load(x[q + i]);
    for (; q < n; ++q) out[q] = gemm::load(x[q]);
    return;
  } else if (step == 2) {  // by vectors: the compiler knows the step
    for (int64_t q = 0; q < n; ++q) out[q] = gemm::load(x[q * 2]);
    return;
  }
  for (int64_t q = 0; q < n; ++q) out[q] = gemm::load(x[q * step]);
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
