// Shared by FlashAttention's kernels on mma.sync: tiles in shared memory, and the part of the problem of a block.
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

// Begins to fill a tile with rows from `first`; zeros where there are none. Lanes take 128 or 64 contiguous
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

// score += a b^T, where this warp takes the rows of a from `first`.
template <class T, int tiles, int n, class A, class B>
__device__ __forceinline__ void add_products(FragmentC (&score)[tiles][n], const A& a, int first, const B& b,
                                             int lane) {
#pragma unroll 4  // all at once, addresses take the registers that results need
  for (int e = 0; e < A::size / 16; ++e) {
    FragmentA left[tiles];
#pragma unroll
    for (int m = 0; m < tiles; ++m) ldmatrix(left[m].x, a.down(first + m * 16, 2 * e, lane));
#pragma unroll
    for (int i = 0; i < n / 2; ++i) {
      uint32_t right[4];
      ldmatrix(right, b.along(i * 16, 2 * e, lane));
#pragma unroll
      for (int m = 0; m < tiles; ++m) {
        mma<T>(score[m][2 * i], left[m], FragmentB{{right[0], right[1]}});
        mma<T>(score[m][2 * i + 1], left[m], FragmentB{{right[2], right[3]}});
      }
    }
  }
}

// result += weight b, with weights rounded to T.
template <class T, int tiles, int n_weights, int n, class B>
__device__ __forceinline__ void add_weighted(FragmentC (&result)[tiles][n],
                                             const FragmentC (&weight)[tiles][n_weights], const B& b, int lane) {
#pragma unroll
  for (int k = 0; k < n_weights / 2; ++k) {
    FragmentA left[tiles];
#pragma unroll
    for (int m = 0; m < tiles; ++m) left[m] = operand<T>(weight[m][2 * k], weight[m][2 * k + 1]);
#pragma unroll
    for (int i = 0; i < n / 2; ++i) {
      uint32_t right[4];
      ldmatrix<true>(right, b.down(k * 16, 2 * i, lane));
#pragma unroll
      for (int m = 0; m < tiles; ++m) {
        mma<T>(result[m][2 * i], left[m], FragmentB{{right[0], right[1]}});
        mma<T>(result[m][2 * i + 1], left[m], FragmentB{{right[2], right[3]}});
      }
    }
  }
}

// The row at which sequence `number` of p.sequences begins; number 0 is the padding before the first one,
// p.sequences + 1 the padding behind the last. The result is a valid row whatever the offsets are: they are
// unchecked data.
__device__ __forceinline__ int begin_of(const Flash& p, const void* begins, uint32_t rows, uint32_t number) {
  if (number == 0) return 0;
  if (number > p.sequences + 1) return int(rows);
  const int64_t at = p.wide_begins ? static_cast<const int64_t*>(begins)[number - 1]
                                   : static_cast<const int32_t*>(begins)[number - 1];
  return int(at < 0 ? 0 : at < rows ? at : rows);
}

// The head of a batch and the block of queries that this thread block takes. The blocks of a head are adjacent,
// so that they find its keys in the L2 cache, those that see the most first.
struct Place {
  int batch, head, queries, keys, q_row, k_row;  // rows: where sequences lie behind each other
  int first;                                     // query
  int ahead;                                     // a query sees the keys before its own number + ahead

  __device__ __forceinline__ Place(const Flash& p, int number, int block)
      : Place(p, number, block, p.heads, p.causal != causal_none) {
    if (p.q_begin) enter_sequence(p, uint32_t(first) / block, block);
  }
  // The block's place among those of so many heads, in their order or from the last one on.
  __device__ __forceinline__ Place(const Flash& p, int number, int block, uint32_t heads, bool backwards = false) {
    const uint32_t matrix = uint32_t(number) / p.blocks, at = uint32_t(number) - matrix * p.blocks;
    batch = int(matrix / heads), head = int(matrix - uint32_t(batch) * heads);
    first = int(backwards ? p.blocks - 1 - at : at) * block;
    q_row = 0, k_row = 0, queries = int(p.queries), keys = int(p.keys);
    look_ahead(p);
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
  // The first of numbers that queries have, (batch, heads, queries).
  __device__ __forceinline__ float* of_queries(const Flash& p, float* numbers) const {
    return numbers + ((int64_t(batch) * p.heads + head) * p.queries + q_row);
  }

 private:
  __device__ __forceinline__ void look_ahead(const Flash& p) {
    ahead = p.causal == causal_none ? keys : p.causal == causal_top_left ? 1 : 1 + keys - queries;
  }
  // The last sequence whose blocks begin up to this one.
  __device__ __forceinline__ void enter_sequence(const Flash& p, uint32_t turn, int block) {
    uint32_t number = 0;
    for (uint32_t end = p.sequences + 1; number < end;) {
      const uint32_t middle = (number + end + 1) / 2;
      if (uint32_t(begin_of(p, p.q_begin, p.queries, middle)) / block + middle <= turn) number = middle;
      else end = middle - 1;
    }
    const auto length = [](int begin, int end) { return end > begin ? end - begin : 0; };
    q_row = begin_of(p, p.q_begin, p.queries, number), k_row = begin_of(p, p.k_begin, p.keys, number);
    first = int(turn - (uint32_t(q_row) / block + number)) * block;
    queries = length(q_row, begin_of(p, p.q_begin, p.queries, number + 1));
    const bool is_one = number != 0 && number <= p.sequences;
    keys = is_one ? length(k_row, begin_of(p, p.k_begin, p.keys, number + 1)) : 0;
    look_ahead(p);
  }
};
}  // namespace gpu
