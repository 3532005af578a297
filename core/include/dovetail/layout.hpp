// dovetail/layout.hpp - how the operands of kernels lie in memory: plain structs that a host fills in
// (elementwise.hpp, product.hpp) and kernels read. C++17, header-only; it includes nothing that a device's compiler
// might lack.
#ifndef DOVETAIL_LAYOUT_HPP
#define DOVETAIL_LAYOUT_HPP

#include <cstdint>

namespace dvt {
inline constexpr int max_axes = 4;                  // the host splits a call with more
inline constexpr uint32_t max_elements = 1u << 31;  // of one launch; the host splits larger calls

struct Scalar {  // a value of any type, in its first bytes
  uint64_t bits[2];
};

// The size of an axis, to divide by: i / size = i * factor >> (31 + shift) for i < 2^31, 2^shift >= size, factor =
// 2^(31 + shift) / size rounded up (Granlund and Montgomery, 1994). GPUs have no instruction for division, CPUs
// none for vectors.
struct Divisor {
  uint32_t size, factor, shift;

  constexpr uint32_t quotient(uint32_t i) const { return uint32_t(uint64_t{i} * factor >> (31 + shift)); }
};

constexpr Divisor divisor(uint32_t size) {
  uint32_t shift = 0;
  while ((uint64_t{1} << shift) < size) ++shift;
  return {size, uint32_t((uint64_t{1} << (31 + shift)) / size + 1), shift};
}

// Elements as rows: one axis has the columns, the others count the rows. Strides are in elements, the output's
// last.
template <int inputs>
struct Layout {
  uint32_t rows, columns;
  uint32_t varies;      // bit i: input i varies along a row; else a row has one value of it
  uint32_t axes;        // of the rows; axis 0 is the innermost
  uint32_t contiguous;  // 1: a row's elements are contiguous in the output and in every input that varies
  Divisor size[max_axes - 1];
  int64_t stride[max_axes - 1][inputs + 1];
  int64_t step[inputs + 1];  // along a row
  Scalar value[inputs];      // of inputs without memory

  // One contiguous row: an array.
  constexpr bool is_dense() const { return contiguous && rows == 1; }
};

inline constexpr int most_batch_axes = 14;

// A batch of products of matrices: c[..., m, n] = a[..., m, k] b[..., k, n] + bias[n], c without gaps.
struct Product {
  uint64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column;  // strides in elements, 0: broadcast
  uint64_t matrices;
  uint32_t axes;
  int64_t batch[most_batch_axes], a_batch[most_batch_axes], b_batch[most_batch_axes];
};

// Windows that slide over images, for convolution and pooling. One spatial axis; without a second one, that has a
// size and a window of 1.
struct WindowAxis {
  int64_t in, stride, out;  // sizes of the input and of the output, the input's stride
  int64_t size, step, padding, dilation;

  constexpr int64_t place(int64_t o, int64_t tap) const { return o * step - padding + tap * dilation; }
  constexpr bool holds(int64_t place) const { return uint64_t(place) < uint64_t(in); }
};
// The output has no gaps.
struct Windows {
  int64_t images, channels;
  int64_t image_stride, channel_stride;
  WindowAxis h, w;
};
}  // namespace dvt
#endif  // DOVETAIL_LAYOUT_HPP
