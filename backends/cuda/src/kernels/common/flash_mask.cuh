// Which scores count: those of keys that are there and that causality shows, with a mask added, and without those
// that dropout takes. Scores lie in fragments of mma's results (FragmentC), in tiles of 16 queries by n x 8 keys.
#pragma once
#include "kernels/common/dropout.cuh"
#include "kernels/common/flash_tile.cuh"

namespace gpu {
inline constexpr float log2_e = 1.44269504f;
inline constexpr float least = -__builtin_huge_valf();

// The query and the key of a lane's first score.
struct Corner {
  int query, key;
};

// Calls body(score, query, key) for a lane's scores.
template <int tiles, int n_keys, class Body>
__device__ __forceinline__ void for_each_score(FragmentC (&score)[tiles][n_keys], const Corner& corner, Body body) {
#pragma unroll
  for (int m = 0; m < tiles; ++m)
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int n = 0; n < n_keys; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          body(score[m][n].x[2 * r + i], corner.query + m * 16 + r * 8, corner.key + n * 8 + i);
}

// Hides the keys that a query does not see.
template <int tiles, int n_keys>
__device__ __forceinline__ void hide(FragmentC (&score)[tiles][n_keys], const Place& place, const Corner& corner) {
  for_each_score(score, corner, [&](float& x, int query, int key) {
    if (key >= place.seen(query)) x = least;
  });
}

// x * scale + mask, where False hides even NaN.
__device__ __forceinline__ float masked(float x, const void* mask, MaskKind kind, int64_t at) {
  switch (kind) {
    case mask_none: return x;
    case mask_bool: return static_cast<const uint8_t*>(mask)[at] ? x : least;
    case mask_f16: return fmaf(float(static_cast<const half*>(mask)[at]), log2_e, x);
    case mask_bf16: return fmaf(float(static_cast<const bf16*>(mask)[at]), log2_e, x);
    default: return fmaf(static_cast<const float*>(mask)[at], log2_e, x);
  }
}

// Scores become exponents of 2, with their mask.
template <int tiles, int n_keys>
__device__ __forceinline__ void add_mask(FragmentC (&score)[tiles][n_keys], const Flash& p, const Place& place,
                                         const Corner& corner) {
  const FlashStrides& s = p.mask_strides;
  const float scale = p.scale * log2_e;
#pragma unroll
  for (int m = 0; m < tiles; ++m)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int query = corner.query + m * 16 + r * 8;
      int64_t at = place.batch * s.batch + place.head * s.head + query * s.row + corner.key * p.mask_column;
#pragma unroll
      for (int n = 0; n < n_keys; ++n, at = opaque(at + 8 * p.mask_column))
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const bool is_there = query < place.queries && corner.key + n * 8 + i < place.keys;
          float& x = score[m][n].x[2 * r + i];
          x = masked(x * scale, p.mask, is_there ? p.mask_kind : mask_none, at + i * p.mask_column);
        }
    }
}

// The number of a probability's element in (batch, heads, queries, keys), and whether it is dropped.
__device__ __forceinline__ uint64_t element_of(const Flash& p, const Place& place, int query, int key) {
  const uint64_t matrix = uint64_t(place.batch) * p.heads + uint32_t(place.head);
  const uint64_t row = matrix * p.queries + uint32_t(place.q_row + query);
  return row * p.keys + uint32_t(place.k_row + key);
}
__device__ __forceinline__ bool is_dropped(const Flash& p, const Place& place, int query, int key) {
  return is_dropped(p.dropout, element_of(p, place, query, key));
}
template <int tiles, int n_keys>
__device__ __forceinline__ void drop(FragmentC (&weight)[tiles][n_keys], const Flash& p, const Place& place,
                                     const Corner& corner) {
#pragma unroll
  for (int m = 0; m < tiles; ++m)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      uint32_t dropped = 0;
#pragma unroll 1  // all at once, random numbers are most of the kernel, and take the registers
      for (int n = 0; n < n_keys; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int query = corner.query + m * 16 + r * 8, key = corner.key + n * 8 + i;
          dropped |= uint32_t(is_dropped(p, place, query, key)) << (2 * n + i);
        }
#pragma unroll
      for (int n = 0; n < n_keys; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (dropped >> (2 * n + i) & 1) weight[m][n].x[2 * r + i] = 0;
    }
}
}  // namespace gpu
