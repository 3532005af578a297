// Exchange between the lanes of a warp of values of any plain type: the hardware's shuffles move 32 bits. All lanes
// of the warp take part; groups of `width` of them, a power of two, keep to themselves.
#pragma once
#include "kernels/common/kernel.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
inline constexpr uint32_t warp_size = 32, all_lanes = ~0u;

template <class T, class Exchange>
__device__ __forceinline__ T exchange_words(const T& value, Exchange exchange) {
  constexpr size_t words = (sizeof(T) + 3) / 4;
  uint32_t word[words] = {};
  memcpy(word, &value, sizeof value);
#pragma unroll
  for (size_t k = 0; k < words; ++k) word[k] = exchange(word[k]);
  T result;
  memcpy(&result, word, sizeof result);
  return result;
}

// The value of lane `from` of the group.
template <class T>
__device__ __forceinline__ T shuffle(const T& value, uint32_t from, uint32_t width = warp_size) {
  return exchange_words(value, [=](uint32_t word) { return __shfl_sync(all_lanes, word, int(from), int(width)); });
}
// The value of the lane `by` before this one, or after it; without such a lane its own.
template <class T>
__device__ __forceinline__ T shuffle_up(const T& value, uint32_t by, uint32_t width = warp_size) {
  return exchange_words(value, [=](uint32_t word) { return __shfl_up_sync(all_lanes, word, by, int(width)); });
}
template <class T>
__device__ __forceinline__ T shuffle_down(const T& value, uint32_t by, uint32_t width = warp_size) {
  return exchange_words(value, [=](uint32_t word) { return __shfl_down_sync(all_lanes, word, by, int(width)); });
}
template <class T>
__device__ __forceinline__ T shuffle_xor(const T& value, uint32_t bits) {
  return exchange_words(value, [=](uint32_t word) { return __shfl_xor_sync(all_lanes, word, int(bits)); });
}
}  // namespace gpu
#endif
