// Dropout by the numbers of elements: the same on every device, and again in a backward pass.
#pragma once
#include "kernels/common/attention.hpp"
#include "kernels/common/philox.cuh"

namespace gpu {
__device__ __forceinline__ bool is_dropped(const Dropout& dropout, uint64_t element) {
  return random_word(dropout.key, element) >> 8 < dropout.below;
}
// Are all weights of a query dropped, the first of which has this number? Then it gets 0, whatever they are.
__device__ __forceinline__ bool drops_all(const Dropout& dropout, uint64_t element, uint64_t keys) {
  uint64_t key = 0;
#pragma unroll 1
  while (key < keys && is_dropped(dropout, element + key)) ++key;
  return key == keys;
}
}  // namespace gpu
