// Softmax of scores that come block by block (Milakov and Gimelshein, 2018), as FlashAttention-2 does it: a running
// maximum and sum of each query, powers of two, one division at the end. In fragments of mma's results (FragmentC):
// a lane holds two queries of a tile, g and g + 8, and for each pairs of adjacent keys.
#pragma once
#include "kernels/common/flash_mask.cuh"

namespace gpu {
inline constexpr float ln_2 = 0.693147182f;

// Over the four lanes that share a query.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// The number that exponents are relative to: the maximum, or 0 where no key has been seen, or an infinite score.
__device__ __forceinline__ float origin(float top) { return fabsf(top) == -least ? 0.0f : top; }

// The softmax of `tiles` x 2 queries. `scale` > 0 makes exponents of 2 of scores.
template <int tiles>
struct Softmax {
  float top[tiles][2], sum[tiles][2];  // sum: of this lane's keys

  __device__ __forceinline__ Softmax() {
#pragma unroll
    for (int m = 0; m < tiles; ++m)
#pragma unroll
      for (int r = 0; r < 2; ++r) top[m][r] = least, sum[m][r] = 0;
  }

  // Scores become weights relative to the maximum so far; factor: what makes so what was relative to the one
  // before.
  template <int n_keys>
  __device__ __forceinline__ void add(FragmentC (&score)[tiles][n_keys], float scale, float (&factor)[tiles][2]) {
#pragma unroll
    for (int m = 0; m < tiles; ++m)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float most = top[m][r];
#pragma unroll
        for (int n = 0; n < n_keys; ++n) most = fmaxf(most, fmaxf(score[m][n].x[2 * r], score[m][n].x[2 * r + 1]));
        most = quad_max(most);
        const float base = -origin(most) * scale;
        factor[m][r] = exp2_approximate(fmaf(top[m][r], scale, base));
        top[m][r] = most, sum[m][r] *= factor[m][r];
#pragma unroll
        for (int n = 0; n < n_keys; ++n)
#pragma unroll
          for (int i = 2 * r; i < 2 * r + 2; ++i) {
            score[m][n].x[i] = exp2_approximate(fmaf(score[m][n].x[i], scale, base));
            sum[m][r] += score[m][n].x[i];
          }
      }
  }

  // The sums of all keys; the logarithm of a query's sum of exponentials.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int m = 0; m < tiles; ++m)
#pragma unroll
      for (int r = 0; r < 2; ++r) sum[m][r] = quad_sum(sum[m][r]);
  }
  __device__ __forceinline__ float lse(int m, int r, float scale) const {
    return sum[m][r] == 0 ? least : (origin(top[m][r]) * scale + log2_approximate(sum[m][r])) * ln_2;
  }
};

// A sum that is NaN makes results NaN, but not those of a query all of whose weights are dropped.
template <int tiles>
__device__ __forceinline__ void forget_dropped(Softmax<tiles>& softmax, const Flash& p, const Place& place,
                                               int query) {
  uint32_t strange = 0;
#pragma unroll
  for (int i = 0; i < 2 * tiles; ++i)
    strange |= uint32_t{softmax.sum[i / 2][i % 2] != softmax.sum[i / 2][i % 2]} << i;
#pragma unroll 1
  for (int i = 0; i < 2 * tiles; ++i)
    if (strange >> i & 1 && !drops_all(p.dropout, element_of(p, place, query + i * 8, 0), uint32_t(place.keys)))
      strange &= ~(1u << i);
#pragma unroll
  for (int i = 0; i < 2 * tiles; ++i)
    if (strange >> i & 1) softmax.sum[i / 2][i % 2] = -least;
}

template <int tiles, int n>
__device__ __forceinline__ void multiply_rows(FragmentC (&result)[tiles][n], const float (&factor)[tiles][2]) {
#pragma unroll
  for (int m = 0; m < tiles; ++m)
#pragma unroll
    for (int i = 0; i < n; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) result[m][i].x[j] *= factor[m][j / 2];
}
}  // namespace gpu
