// Products of matrices by blocks of 16 x 16 threads: tiles of both operands in shared memory, a square of results
// in the registers of each thread. Consecutive threads (tx) own consecutive columns.
#pragma once
#include "gpu/kernels/shared/vectors.hpp"
#include "kernels/common/complex.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
inline constexpr int side = 16;        // of a block
inline constexpr int tile_depth = 16;  // terms of the sums for which operands lie in shared memory at once

template <class C>
__device__ __forceinline__ C multiply_add(C a, C b, C c) {
  if constexpr (std::is_integral_v<C>) return a * b + c;
  else return fma(a, b, c);
}
template <class T>
__device__ __forceinline__ complex<T> multiply_add(complex<T> a, complex<T> b, complex<T> c) {
  return {fma(a.real, b.real, fma(-a.imag, b.imag, c.real)), fma(a.real, b.imag, fma(a.imag, b.real, c.imag))};
}

// Adding it changes nothing, not the sign of a zero either.
template <class C>
__device__ C no_shift() {
  if constexpr (std::is_integral_v<C>) return 0;
  else return C(-0.0f);
}

// A block of them, 0 beyond their ends, by element: threads of a warp read consecutive lines. One more element in
// each row spreads what they write over the banks.
template <class C, int lines>
struct Tile {
  C at[tile_depth][lines + 1];
};

// The block of `from` that begins at this line and element, by a block of threads. Where elements of a line are
// contiguous tx counts them, else lines: adjacent threads read adjacent elements.
template <class C, int lines, class T>
__device__ void fill(Tile<C, lines>& tile, const Vectors<T>& from, uint64_t line, uint64_t element, int ty,
                     int tx) {
  const bool along = from.step == 1;
  for (int i = 0; i < lines / side; ++i) {
    const int l = along ? ty + side * i : tx + side * i, q = along ? tx : ty;
    const uint64_t at_line = line + uint64_t(l), at_element = element + uint64_t(q);
    const bool inside = at_line < from.count && at_element < from.length;
    tile.at[q][l] =
        inside ? C(Compute<T>(from.data[int64_t(at_line) * from.line + int64_t(at_element) * from.step])) : C(0);
  }
}

// sums[i][j] += a(ty + side * i, q) b(tx + side * j, q) over all elements q.
template <class C, int lines, int each>
__device__ void add_products(C (&sums)[each][each], const Tile<C, lines>& a, const Tile<C, lines>& b, int ty,
                             int tx) {
  static_assert(each * side == lines);
#pragma unroll
  for (int q = 0; q < tile_depth; ++q) {
    C x[each], y[each];
#pragma unroll
    for (int i = 0; i < each; ++i) x[i] = a.at[q][ty + side * i], y[i] = b.at[q][tx + side * i];
#pragma unroll
    for (int i = 0; i < each; ++i)
#pragma unroll
      for (int j = 0; j < each; ++j) sums[i][j] = multiply_add(x[i], y[j], sums[i][j]);
  }
}
}  // namespace gpu
#endif
