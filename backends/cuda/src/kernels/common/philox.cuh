// Philox4x32-10 (Salmon et al., 2011). `key`: seed low and high, offset low and high; the bits of element i are
// word i % 4 at counter offset + i / 4.
#pragma once
#include "kernels/common/kernel.cuh"

namespace gpu {
__device__ __forceinline__ uint4 philox(const uint32_t* key, uint64_t index) {
  const uint64_t counter = (uint64_t(key[3]) << 32 | key[2]) + index;
  uint32_t key0 = key[0], key1 = key[1];
  uint4 word{uint32_t(counter), uint32_t(counter >> 32), 0, 0};
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t p = uint64_t(0xD2511F53) * word.x, q = uint64_t(0xCD9E8D57) * word.z;
    word = {uint32_t(q >> 32) ^ word.y ^ key0, uint32_t(q), uint32_t(p >> 32) ^ word.w ^ key1, uint32_t(p)};
    key0 += 0x9E3779B9, key1 += 0xBB67AE85;
  }
  return word;
}

__device__ __forceinline__ uint32_t random_word(const uint32_t* key, uint64_t element) {
  const uint4 word = philox(key, element / 4);
  switch (element % 4) {
    case 0: return word.x;
    case 1: return word.y;
    case 2: return word.z;
    default: return word.w;
  }
}
}  // namespace gpu
