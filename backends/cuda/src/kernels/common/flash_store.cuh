// The end of attention: results divided by their sums, and written.
#pragma once
#include "kernels/common/flash_softmax.cuh"

namespace gpu {
// A warp's rows from `first`, through its own part of the tile of queries: 16 bytes a store. A query that sees no
// key gets 0.
template <class T, class Tile, int tiles, int n>
__device__ __forceinline__ void store(const Flash& p, const Place& place, const Tile& tile,
                                      const FragmentC (&result)[tiles][n], const Softmax<tiles>& softmax,
                                      float factor, int first, int lane) {
#pragma unroll
  for (int m = 0; m < tiles; ++m)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float sum = softmax.sum[m][r], scale = sum == 0 ? 0.0f : factor / sum;
      const int row = first + m * 16 + r * 8 + lane / 4;
#pragma unroll
      for (int i = 0; i < n; ++i)
        store_shared(tile.at(row, i) + lane % 4 * 4,
                     pack<T>(result[m][i].x[2 * r] * scale, result[m][i].x[2 * r + 1] * scale));
    }
  __syncwarp();
  T* out = place.out<T>(p);
#pragma unroll
  for (int i = 0; i < tiles * 16 * n / 32; ++i) {
    const int at = i * 32 + lane, row = first + at / n, chunk = at % n;
    if (place.first + row < place.queries && chunk * 8 < int(p.value_size))
      *reinterpret_cast<uint4*>(out + (place.first + row) * p.out_strides.row + chunk * 8) =
          load_shared(tile.at(row, chunk));
  }
}

// The logarithms of the sums of queries from `first`, by one of the four lanes that share a query.
template <int tiles>
__device__ __forceinline__ void store_lse(const Flash& p, const Place& place, const Softmax<tiles>& softmax,
                                          float scale, int first, int lane) {
  if (lane % 4) return;
#pragma unroll
  for (int m = 0; m < tiles; ++m)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int query = first + m * 16 + r * 8 + lane / 4;
      if (query < place.queries) place.of_queries(p, p.lse)[query] = softmax.lse(m, r, scale);
    }
}
}  // namespace gpu
