// A convolution of one or two spatial axes as one product per image and group: weights (outputs, taps) times the
// windows of x (taps, pixels). The windows are copied into panels of a few pixels just before use, so only a tile
// of them exists at a time. Groups of one channel take no product.
#pragma once
#include "chunks.hpp"
#include "simd/windows.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
// The windows of pixels [first, first + n), n <= P, in `count` channels from x on: out[channel][kh][kw][P].
template <class In>
void windows(const Windows& c, const In* x, int64_t count, int64_t first, int64_t n, gemm::Accumulator<In>* out) {
  constexpr int P = gemm::panel<gemm::Accumulator<In>>;
  const int64_t places = c.h.kernel * c.w.kernel;
  if (n < P)
    for (int64_t t = 0; t < count * places; ++t)
      for (int64_t p = n; p < P; ++p) out[t * P + p] = 0;
  for (int64_t p = 0, pixel = first; p < n;) {  // runs of pixels of one output row
    const int64_t i = pixel / c.w.out, j = pixel % c.w.out, run = least(n - p, c.w.out - j);
    for (int64_t kh = 0; kh < c.h.kernel; ++kh) {
      const int64_t row = i * c.h.step - c.h.padding + kh * c.h.dilation;
      for (int64_t kw = 0; kw < c.w.kernel; ++kw) {
        int64_t from, to;
        c.w.outputs(kw, from, to);
        const bool inside = row >= 0 && row < c.h.in;
        const int64_t a = inside ? least(most(from - j, 0), run) : run,
                      b = inside ? most(least(to - j, run), a) : run;
        const int64_t at = row * c.h.stride + (j * c.w.step - c.w.padding + kw * c.w.dilation) * c.w.stride;
        gemm::Accumulator<In>* to_line = out + (kh * c.w.kernel + kw) * P + p;
        for (int64_t channel = 0; channel < count; ++channel, to_line += places * P)
          copy_line(x + channel * c.channel_stride + at, c.w.step * c.w.stride, a, b, run, to_line);
      }
    }
    p += run, pixel += run;
  }
}

// Outputs [o, o + rows) of a group at pixels [first, first + n): y's rows are `pixels` apart.
template <class In>
bool tile(const Windows& c, const In* x, const In* weight, const In* bias, In* y, int64_t rows, int64_t first,
          int64_t n) {
  using T = gemm::Accumulator<In>;
  constexpr int P = gemm::panel<T>;
  constexpr bool converts = !std::is_same_v<In, T>;
  const int64_t places = c.h.kernel * c.w.kernel, steps = least(divide_up(c.taps, 768), c.channels);
  const int64_t step = divide_up(c.channels, steps) * places;  // whole channels
  T* const panels = static_cast<T*>(scratch(Scratch::operand_b, size_t(step * divide_up(n, P) * P) * sizeof(T)));
  T* const packed =
      static_cast<T*>(converts ? scratch(Scratch::operand_a, size_t(rows * step) * sizeof(T)) : nullptr);
  T* const sums = static_cast<T*>(converts ? scratch(Scratch::result, size_t(rows * n) * sizeof(T)) : nullptr);
  if (!panels || (converts && (!packed || !sums))) return false;
  T* to = sums;
  int64_t to_row = n;
  if constexpr (!converts) to = y, to_row = c.pixels;
  for (int64_t i = 0; bias && i < rows; ++i)
    for (int64_t j = 0; j < n; ++j) to[i * to_row + j] = gemm::load(bias[i]);
  for (int64_t t = 0; t < c.taps; t += step) {
    const int64_t count = least(step, c.taps - t);
    for (int64_t j = 0; j < n; j += P) {
      const In* const channels = x + t / places * c.channel_stride;
      windows(c, channels, count / places, first + j, least(P, n - j), panels + j * count);
    }
    const gemm::Panels<T> b{panels, count * P, P};
    if constexpr (converts) {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t q = 0; q < count; ++q) packed[i * count + q] = gemm::load(weight[i * c.taps + t + q]);
      gemm::multiply<T>(rows, n, count, packed, count, 1, b, to, to_row, t || bias);
    } else {
      gemm::multiply<T>(rows, n, count, weight + t, c.taps, 1, b, to, to_row, t || bias);
    }
  }
  if constexpr (converts)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j) y[i * c.pixels + j] = gemm::store<In>(sums[i * n + j]);
  return true;
}

// One channel to one output: each tap adds a shifted row.
template <class In>
bool depthwise(const Windows& c, const In* x, const In* weight, const In* bias, In* y) {
  using T = gemm::Accumulator<In>;
  T* const sums = static_cast<T*>(scratch(Scratch::result, size_t(c.w.out) * sizeof(T)));
  if (!sums) return false;
  const int64_t step = c.w.step * c.w.stride;
  for (int64_t i = 0; i < c.h.out; ++i, y += c.w.out) {
    const T start = bias ? gemm::load(*bias) : T(0);
    for (int64_t j = 0; j < c.w.out; ++j) sums[j] = start;
    for (int64_t kh = 0; kh < c.h.kernel; ++kh) {
      const int64_t row = i * c.h.step - c.h.padding + kh * c.h.dilation;
      if (row < 0 || row >= c.h.in) continue;
      for (int64_t kw = 0; kw < c.w.kernel; ++kw) {
        int64_t from, to;
        c.w.outputs(kw, from, to);
        const T factor = gemm::load(weight[kh * c.w.kernel + kw]);
        const In* const line = x + row * c.h.stride + (kw * c.w.dilation - c.w.padding) * c.w.stride;
        if (step == 1)
          for (int64_t j = from; j < to; ++j) sums[j] += factor * gemm::load(line[j]);
        else
          for (int64_t j = from; j < to; ++j) sums[j] += factor * gemm::load(line[j * step]);
      }
    }
    for (int64_t j = 0; j < c.w.out; ++j) y[j] = gemm::store<In>(sums[j]);
  }
  return true;
}

// Outputs [o, o + rows) at pixels [first, first + n) of one image and group.
template <class In>
bool chunk(const Windows& c, const In* x, const In* weight, const In* bias, In* y, int64_t image, int64_t group,
           int64_t o, int64_t rows, int64_t first, int64_t n) {
  const int64_t output = group * c.outputs + o;
  x += image * c.image_stride + group * c.channels * c.channel_stride;
  weight += output * c.taps;
  if (bias) bias += output;
  y += (image * c.groups * c.outputs + output) * c.pixels + first;
  if (c.channels == 1 && c.outputs == 1) return depthwise(c, x, weight, bias, y);
  return tile(c, x, weight, bias, y, rows, first, n);
}

// y = the convolution of x, by chunks on the pool. `taps` of c is not 0.
template <class In>
dvt_status convolve(const Windows& c, const In* x, const In* weight, const In* bias, In* y) {
  constexpr int P = gemm::panel<gemm::Accumulator<In>>;
  const bool single = c.channels == 1 && c.outputs == 1;
  // A tile: up to 256 outputs, and as many pixels as leave enough tiles for the threads.
  const int64_t rows = single ? 1 : least(c.outputs, 256), down = divide_up(c.outputs, rows);
  const int64_t threads = int64_t(dvt::host->num_threads(dvt::host)), others = c.images * c.groups * down;
  int64_t columns = single ? c.pixels : least(c.pixels, 512);
  const auto work = [&] { return rows * columns * c.taps; };
  while (!single && others * divide_up(c.pixels, columns) < 2 * threads && columns > 2 * P && work() > 600'000)
    columns = divide_up(columns / 2, P) * P;
  const int64_t across = divide_up(c.pixels, columns);
  return for_each_chunk(others * across, uint64_t(300'000 / (work() + 1) + 1), [&](int64_t at) {
    const int64_t first = at % across * columns, o = at / across % down * rows;
    return chunk(c, x, weight, bias, y, at / across / down / c.groups, at / across / down % c.groups, o,
                 least(rows, c.outputs - o), first, least(columns, c.pixels - first));
  });
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
