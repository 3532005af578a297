// The places of the items of a block when they are sorted by one digit: stable ranks, by votes in warps (Merrill
// and Grimshaw, 2011; Adinets and Merrill, 2022).
#pragma once
#include "kernels/common/order.hpp"
#include "kernels/common/team.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
struct Total {
  static __device__ __forceinline__ uint32_t nothing() { return 0; }
  static __device__ __forceinline__ uint32_t join(uint32_t a, uint32_t b) { return a + b; }
};

inline constexpr int sort_warps = sort_threads / int(warp_size);
using DigitCounts = uint32_t[sort_warps][digits];

// Item k of this thread, when each has `items`: lanes side by side, warps one behind the other.
__device__ __forceinline__ uint32_t item_of(uint32_t k, uint32_t items) {
  return (threadIdx.x / warp_size * items + k) * warp_size + threadIdx.x % warp_size;
}

// The count of this thread's digit in the block.
struct DigitOfThread {
  uint32_t start, count;
};

// The lanes that have the same digit as this one.
__device__ __forceinline__ uint32_t peers_of(uint32_t digit) {
  uint32_t peers = all_lanes;
#pragma unroll
  for (int bit = 0; bit < digit_bits; ++bit) {
    const bool set = digit >> bit & 1;
    const uint32_t votes = __ballot_sync(all_lanes, set);
    peers &= set ? votes : ~votes;
  }
  return peers;
}

// The ranks of the first `items` of each thread; `counts` is shared memory.
template <int most>
__device__ __forceinline__ DigitOfThread rank_digits(const uint32_t (&digit)[most], uint32_t (&rank)[most],
                                                     uint32_t items, DigitCounts& counts) {
  const uint32_t warp = threadIdx.x / warp_size, before_lane = (1u << threadIdx.x % warp_size) - 1;
#pragma unroll
  for (int w = 0; w < sort_warps; ++w) counts[w][threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < most; ++k) {
    if (uint32_t(k) >= items) break;
    const uint32_t peers = peers_of(digit[k]), before = counts[warp][digit[k]];
    __syncwarp();
    if ((peers & before_lane) == 0) counts[warp][digit[k]] = before + uint32_t(__popc(peers));
    __syncwarp();
    rank[k] = before + uint32_t(__popc(peers & before_lane));
  }
  __syncthreads();
  DigitOfThread mine{0, 0};
#pragma unroll
  for (int w = 0; w < sort_warps; ++w) mine.count += counts[w][threadIdx.x];
  uint32_t all;
  mine.start = Row(sort_threads).scan<Total>(mine.count, all);
  uint32_t place = mine.start;
#pragma unroll
  for (int w = 0; w < sort_warps; ++w) {
    const uint32_t count = counts[w][threadIdx.x];
    counts[w][threadIdx.x] = place;
    place += count;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < most; ++k) {
    if (uint32_t(k) >= items) break;
    rank[k] += counts[warp][digit[k]];
  }
  return mine;
}
}  // namespace gpu
#endif
