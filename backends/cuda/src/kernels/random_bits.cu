#include "kernels/common/philox.cuh"

KERNEL(256, random_bits)(const uint32_t* key, uint32_t* out, uint64_t n) {
  gpu::for_each_item((n + 3) / 4, [=](uint64_t i) {
    const uint4 words = gpu::philox(key, i);
    const uint32_t word[] = {words.x, words.y, words.z, words.w};
    for (uint64_t k = 0; k < 4; ++k)
      if (4 * i + k < n) out[4 * i + k] = word[k];
  });
}
