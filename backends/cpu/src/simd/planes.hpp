// Parts of the operands of a convolution: blocks of y, and the planes of x that they read. Some rows of x are, with
// their padding, as one plane for each place of a pixel within a step: there the windows of adjacent pixels are
// adjacent, so that a row of the matrix of windows (taps, pixels) is a plane from an offset on.
#pragma once
#include <utility>

#include "simd/windows.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
template <class In>
struct Operands {
  const In *x, *weight, *bias;
  In* y;
};

// A part of y: rows and columns of some outputs of one image and group.
struct Block {
  int64_t image, group, output, outputs;
  int64_t row, rows, column, columns;
};

// The rows and columns of a block where threads do not need smaller ones: some 512 pixels, more of few outputs.
inline Block largest_block(const Windows& c) {
  constexpr int64_t longest = 1024;
  const int64_t pixels = c.outputs <= 4 ? 4096 : 512;
  Block b{};
  b.columns = c.w.out <= longest ? c.w.out : divide_up(c.w.out, divide_up(c.w.out, pixels));
  b.rows = divide_up(c.h.out, divide_up(c.h.out, most(pixels / most(b.columns, 1), 1)));
  return b;
}

// One axis of the planes of `count` pixels, from pixel `first` on. `dense`: a plane for each place of the window,
// of `count` places, so that the rows of a plane follow each other as those of y do.
struct PlaneAxis {
  Side side;
  int64_t first = 0, planes = 1, size = 0;
  bool dense = false;

  PlaneAxis() = default;
  PlaneAxis(const Side& s, int64_t begin, int64_t count, bool is_dense) : side(s), first(begin), dense(is_dense) {
    int64_t a = s.step, b = s.dilation;
    while (b) a = std::exchange(b, a % b);
    planes = dense ? s.kernel : least(s.kernel, s.step / a);
    size = dense ? count : count + (s.kernel - 1) * s.dilation / s.step;
  }
  int64_t plane(int64_t k) const { return k % planes; }
  int64_t shift(int64_t k) const { return dense ? 0 : k * side.dilation / side.step; }
  // The element of x at place i of a plane.
  int64_t place(int64_t plane, int64_t i) const {
    return side.place(first + i, 0) + (dense ? plane * side.dilation : plane * side.dilation % side.step);
  }
  // Places [from, to) of a plane are within x.
  void within(int64_t plane, int64_t& from, int64_t& to) const {
    const int64_t begin = place(plane, 0);
    from = begin < 0 ? least(divide_up(-begin, side.step), size) : 0;
    to = begin < side.in ? most(least(divide_up(side.in - begin, side.step), size), from) : from;
  }
};

// The planes of some channels.
struct Planes {
  PlaneAxis h, w;
  int64_t size = 0, of_channel = 0;

  Planes() = default;
  Planes(const Windows& c, const Block& b, bool dense)
      : h(c.h, b.row, b.rows, false),
        w(c.w, b.column, b.columns, dense),
        size(h.size * w.size),
        of_channel(size * h.planes * w.planes) {}

  // Copies the elements of x; the places of the padding must be 0 already.
  template <class In>
  void copy(const Windows& c, const In* x, int64_t channels, gemm::Accumulator<In>* out) const {
    for (int64_t i = 0; i < h.planes; ++i)
      for (int64_t j = 0; j < w.planes; ++j, out += size) copy_plane(c, x, channels, i, j, out);
  }
  // Where each tap's row of the matrix of windows begins.
  void list(const Windows& c, int64_t channels, int64_t* offset) const {
    for (int64_t channel = 0; channel < channels; ++channel)
      for (int64_t kh = 0; kh < c.h.kernel; ++kh)
        for (int64_t kw = 0; kw < c.w.kernel; ++kw)
          *offset++ = channel * of_channel + (h.plane(kh) * w.planes + w.plane(kw)) * size + h.shift(kh) * w.size +
                      w.shift(kw);
  }

 private:
  template <class In>
  void copy_plane(const Windows& c, const In* x, int64_t channels, int64_t of_h, int64_t of_w,
                  gemm::Accumulator<In>* out) const {
    int64_t top, bottom, from, to;
    h.within(of_h, top, bottom), w.within(of_w, from, to);
    const int64_t step = c.w.step * c.w.stride, row = c.h.step * c.h.stride;
    x += h.place(of_h, top) * c.h.stride + w.place(of_w, from) * c.w.stride, out += from;
    for (int64_t channel = 0; channel < channels; ++channel, x += c.channel_stride, out += of_channel)
      for (int64_t i = top; i < bottom; ++i) copy_line(x + (i - top) * row, step, to - from, out + i * w.size);
  }
};
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
