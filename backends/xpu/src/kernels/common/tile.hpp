// Products of matrices by groups of 16 x 16 work items: tiles of both operands in local memory, a few results in
// the registers of each item. Consecutive items (tx) own consecutive columns, and items of one ty share their
// rows, so that the CPU device's compiler finds vectors in it as well.
#pragma once
#include "gpu/kernels/shared/vectors.hpp"

namespace gpu {
inline constexpr int side = 16;

template <class C>
C multiply_add(C a, C b, C c) {
  if constexpr (std::is_integral_v<C>) return a * b + c;
  else return sycl::fma(a, b, c);
}

// A block of them in local memory, 0 beyond their ends. Right operands lie by element, for vectors along tx; a left
// one, of which adjacent items read the same, as it is filled best: by line where its elements are contiguous.
template <class C, int lines, int elements>
struct ByLine {
  C (&to)[lines][elements];
  C& at(size_t l, size_t q) const { return to[l][q]; }
};
template <class C, int lines, int elements>
struct ByElement {
  C (&to)[elements][lines];
  C& at(size_t l, size_t q) const { return to[q][l]; }
};

// If tx counts elements (along), adjacent items read adjacent elements when step is 1, otherwise when line is 1.
template <bool along, template <class, int, int> class Tile, class C, int lines, int elements, class T>
void fill(const Tile<C, lines, elements>& tile, const T* from, int64_t line, int64_t step, size_t lines_left,
          size_t elements_left, size_t ty, size_t tx) {
  constexpr int fast = along ? elements : lines, slow = along ? lines : elements;
#pragma unroll 1  // unrolled, the CPU device's compiler makes gathers and scatters of it
  for (int i = 0; i < slow / side; ++i)
#pragma unroll
    for (int j = 0; j < fast / side; ++j) {
      const size_t a = ty + size_t(side * i), b = tx + size_t(side * j), l = along ? a : b, q = along ? b : a;
      const bool inside = l < lines_left && q < elements_left;
      tile.at(l, q) = C(0);
      if (inside) tile.at(l, q) = C(Compute<T>(from[int64_t(l) * line + int64_t(q) * step]));
    }
}

// The block of `from` that begins at this line and element, by a group.
template <template <class, int, int> class Tile, class C, int lines, int elements, class T>
void fill(const Tile<C, lines, elements>& tile, const Vectors<T>& from, uint64_t line, uint64_t element, size_t ty,
          size_t tx) {
  const T* const data = from.data + int64_t(line) * from.line + int64_t(element) * from.step;
  const size_t lines_left = sycl::min(from.count - sycl::min(line, from.count), uint64_t(lines));
  const size_t elements_left = sycl::min(from.length - sycl::min(element, from.length), uint64_t(elements));
  if (from.step == 1) fill<true>(tile, data, from.line, 1, lines_left, elements_left, ty, tx);
  else if (from.line == 1) fill<false>(tile, data, 1, from.step, lines_left, elements_left, ty, tx);
  else fill<false>(tile, data, from.line, from.step, lines_left, elements_left, ty, tx);
}

// sums[i][j] += a(ty * rows + i, q) b(tx + side * j, q) over all elements q.
template <template <class, int, int> class Left, class C, int height, int depth, int width, int rows, int columns>
void add_products(C (&sums)[rows][columns], const Left<C, height, depth>& a, const ByElement<C, width, depth>& b,
                  size_t ty, size_t tx) {
  for (int q = 0; q < depth; ++q) {
    C x[rows], y[columns];
#pragma unroll
    for (int i = 0; i < rows; ++i) x[i] = a.at(ty * rows + size_t(i), size_t(q));
#pragma unroll
    for (int j = 0; j < columns; ++j) y[j] = b.at(tx + size_t(side * j), size_t(q));
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) sums[i][j] = multiply_add(x[i], y[j], sums[i][j]);
  }
}
}  // namespace gpu
