// The operands of products of matrices, and how windows of images are one of them.
#pragma once
#include "dovetail/layout.hpp"
#include "kernels/common/portable.hpp"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
// Sums of products: of 16-bit floats in float32; integers wrap whatever their sign.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, uint32_t, Compute<T>>;

// An operand as lines of elements, which products are summed along: rows of the left one, columns of the right one.
template <class T>
struct Vectors {
  const T* data;
  uint64_t count, length;  // lines, elements of each
  int64_t line, step;      // strides
};

// The first elements of `each` windows, every `side`-th from window `first`.
template <int each, int side>
struct Corners {
  int64_t y[each], x[each];

  GPU_FN Corners(const dvt::Windows& how, int64_t first) {
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const auto place = first + side * j, i = place / how.w.out;
      y[j] = i < how.h.out ? how.h.place(i, 0) : how.h.in + how.h.size * how.h.dilation;  // beyond: nowhere
      x[j] = how.w.place(place - i * how.w.out, 0);
    }
  }

  // body(j, inside, element) for tap number `tap` (channel, row, column of the weight) of each window j; only where
  // it is `inside` the image may the element be read.
  template <class T, class Body>
  GPU_FN void for_each(const T* image, const dvt::Windows& how, uint64_t tap, uint64_t taps, Body body) const {
    const auto line = int64_t(tap) / how.w.size, channel = line / how.h.size;
    const int64_t down = (line - channel * how.h.size) * how.h.dilation,
                  right = (int64_t(tap) - line * how.w.size) * how.w.dilation;
    const T* const from = image + channel * how.channel_stride;
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const int64_t row = y[j] + down, column = x[j] + right;
      const bool inside = tap < taps && how.h.holds(row) && how.w.holds(column);
      body(j, inside, from + (row * how.h.stride + column * how.w.stride));
    }
  }
};
}  // namespace gpu
#endif
