// Philox4x32-10 (Salmon et al., 2011): words 4 i to 4 i + 3 are those of counter offset + i.
#include "kernels/common/kernel.hpp"

KERNEL(1, random_bits)(const uint32_t* key, uint32_t* out, uint64_t n) {
  const uint64_t offset = uint64_t(key[3]) << 32 | key[2];
  gpu::for_each_item((n + 3) / 4, [=](size_t i) {
    const uint64_t counter = offset + i;
    uint32_t key0 = key[0], key1 = key[1], word[4] = {uint32_t(counter), uint32_t(counter >> 32), 0, 0};
    for (int round = 0; round < 10; ++round) {
      const uint64_t p = uint64_t(0xD2511F53) * word[0], q = uint64_t(0xCD9E8D57) * word[2];
      word[0] = uint32_t(q >> 32) ^ word[1] ^ key0, word[1] = uint32_t(q);
      word[2] = uint32_t(p >> 32) ^ word[3] ^ key1, word[3] = uint32_t(p);
      key0 += 0x9E3779B9, key1 += 0xBB67AE85;
    }
    for (uint64_t k = 0; k < 4; ++k)
      if (4 * i + k < n) out[4 * i + k] = word[k];
  });
}
