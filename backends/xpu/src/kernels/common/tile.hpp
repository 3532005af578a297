// Products of matrices by groups of 16 x 16 work items: tiles of both operands in local memory, a few results in
// the registers of each item. Neighbouring items (tx) own neighbouring columns, and items of one ty share their
// rows, so that the CPU device's compiler finds vectors in it as well.
#pragma once
#include "kernels/common/types.hpp"

namespace xpu {
inline constexpr int side = 16;

// Sums of products: of 16-bit floats in float32; integers wrap whatever their sign.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, uint32_t, Compute<T>>;

template <class C>
C multiply_add(C a, C b, C c) {
  if constexpr (std::is_integral_v<C>) return a * b + c;
  else return sycl::fma(a, b, c);
}

// Lines of an operand, and where in each a product begins.
template <class T>
struct Lines {
  const T* data;
  uint64_t count, length;  // lines, elements of each
  int64_t line, step;      // strides
};

// to[q][l] = element first_element + q of line first_line + l, 0 beyond the ends. By a group of `side` squared
// items.
template <class T, class C, int depth, int width>
void fill(C (&to)[depth][width], const Lines<T>& from, uint64_t first_line, uint64_t first_element, int item) {
  const bool along = from.step == 1;  // neighbours read neighbours
  for (int e = item; e < depth * width; e += side * side) {
    const int l = along ? e / depth : e % width, q = along ? e % depth : e / width;
    const uint64_t line = first_line + uint64_t(l), element = first_element + uint64_t(q);
    const bool inside = line < from.count && element < from.length;
    to[q][l] = inside ? C(Compute<T>(from.data[int64_t(line) * from.line + int64_t(element) * from.step])) : C(0);
  }
}

// sums[i][j] += a[q][ty * rows + i] b[q][tx + side * j] over all q.
template <class C, int depth, int height, int width, int rows, int columns>
void add_products(C (&sums)[rows][columns], const C (&a)[depth][height], const C (&b)[depth][width], int ty,
                  int tx) {
  for (int q = 0; q < depth; ++q) {
    C x[rows], y[columns];
#pragma unroll
    for (int i = 0; i < rows; ++i) x[i] = a[q][ty * rows + i];
#pragma unroll
    for (int j = 0; j < columns; ++j) y[j] = b[q][tx + side * j];
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) sums[i][j] = multiply_add(x[i], y[j], sums[i][j]);
  }
}
}  // namespace xpu
