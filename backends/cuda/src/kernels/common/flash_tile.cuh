// What FlashAttention's kernels on mma.sync share: tiles in shared memory and where a block works.
#pragma once
#include "kernels/common/flash.hpp"
#include "kernels/common/mma.cuh"

namespace gpu {
// `rows` rows of `size` 16-bit elements in chunks of 16 bytes. The chunks of a row are exchanged by its number, so
// that the eight rows of a matrix that ldmatrix reads lie in different banks.
template <int rows_, int size_>
struct SwizzledTile {
  static constexpr int rows = rows_, size = size_, chunks = size / 8, bytes = rows * size * 2;
  static_assert(size % 32 == 0);

  SharedAddress base;

  __device__ __forceinline__ SharedAddress at(int row, int chunk) const {
    const int turn = size % 64 == 0 ? row & 7 : row >> 1 & 3;  // of 128 bytes, or of 64: two rows a turn
    return base + uint32_t(row * size * 2 + (chunk ^ turn) * 16);
  }
  // The address that this lane gives to ldmatrix for the 16 x 16 elements at (row, 8 * chunk): matrices down the
  // rows first, or along them.
  __device__ __forceinline__ SharedAddress down(int row, int chunk, int lane) const {
    return at(row + lane % 16, chunk + lane / 16);
  }
  __device__ __forceinline__ SharedAddress along(int row, int chunk, int lane) const {
    return at(row + lane / 16 * 8 + lane % 8, chunk + lane / 8 % 2);
  }
};

// Begins to fill a tile with rows from `first`; zeros where there are none. Lanes take 128 or 64 neighbouring
// bytes.
template <int threads, class Tile, class T>
__device__ __forceinline__ void fill(const Tile& tile, const T* from, int64_t stride, int first, int rows,
                                     int size) {
  constexpr int wide = Tile::size % 64 == 0 ? 8 : 4, high = threads / wide;
  static_assert(Tile::rows % high == 0 && high % 8 == 0);
  const int thread = opaque(int(threadIdx.x)), row = thread / wide, chunk = thread % wide;
  int64_t at = (first + row) * stride + chunk * 8;
#pragma unroll
  for (int i = 0; i < Tile::rows; i += high, at = opaque(at + high * stride))
#pragma unroll
    for (int j = 0; j < Tile::chunks; j += wide)
      copy_async(tile.at(row + i, chunk + j), from + at + j * 8, first + row + i < rows && (chunk + j) * 8 < size);
}

// The head of a batch and the block of queries that this thread block takes. The blocks of a head are neighbours,
// so that they find its keys in the L2 cache, those that see the most first.
struct Place {
  int batch, head, queries, keys, q_row, k_row;  // rows: where sequences lie behind each other
  int first;                                     // query
  int ahead;                                     // a query sees the keys before its own number + ahead

  __device__ __forceinline__ Place(const Flash& p, int number, int block) {
    const uint32_t matrix = uint32_t(number) / p.blocks, turn = uint32_t(number) - matrix * p.blocks;
    batch = int(matrix / p.heads), head = int(matrix - uint32_t(batch) * p.heads);
    first = int(p.causal == causal_none ? turn : p.blocks - 1 - turn) * block;
    q_row = p.q_begin ? p.q_begin[batch] : 0, k_row = p.k_begin ? p.k_begin[batch] : 0;
    queries = p.q_begin ? p.q_begin[batch + 1] - q_row : int(p.queries);
    keys = p.k_begin ? p.k_begin[batch + 1] - k_row : int(p.keys);
    ahead = p.causal == causal_none ? keys : p.causal == causal_top_left ? 1 : 1 + keys - queries;
  }
  // How many keys a query sees: none where it is not positive.
  __device__ __forceinline__ int seen(int query) const { return query + ahead < keys ? query + ahead : keys; }
  template <class T>
  __device__ __forceinline__ T* rows(T* data, const FlashStrides& s, int head_, int row) const {
    return data + (batch * s.batch + head_ * s.head + row * s.row);
  }
  template <class T>
  __device__ __forceinline__ const T* q(const Flash& p) const {
    return rows(static_cast<const T*>(p.q), p.q_strides, head, q_row);
  }
  template <class T>
  __device__ __forceinline__ const T* k(const Flash& p) const {
    return rows(static_cast<const T*>(p.k), p.k_strides, head / int(p.heads_per_key), k_row);
  }
  template <class T>
  __device__ __forceinline__ const T* v(const Flash& p) const {
    return rows(static_cast<const T*>(p.v), p.v_strides, head / int(p.heads_per_key), k_row);
  }
  template <class T>
  __device__ __forceinline__ T* out(const Flash& p) const {
    return rows(static_cast<T*>(p.out), p.out_strides, head, q_row);
  }
  __device__ __forceinline__ float* lse(const Flash& p) const {
    return p.lse + (int64_t(batch) * p.heads + head) * p.queries;
  }
};
}  // namespace gpu
