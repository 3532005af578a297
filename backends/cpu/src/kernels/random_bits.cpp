// random_bits: Philox4x32-10. Element i is word i % 4 of the block whose counter is offset + i / 4.
#include "kernel.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
constexpr int lanes = 16;  // blocks computed in parallel

struct Blocks {
  uint32_t word[4][lanes];
};

DOVETAIL_CPU_INLINE void philox(uint64_t counter, uint32_t key0, uint32_t key1, Blocks& b) {
  for (int i = 0; i < lanes; ++i) {
    b.word[0][i] = uint32_t(counter + uint64_t(i));
    b.word[1][i] = uint32_t((counter + uint64_t(i)) >> 32);
    b.word[2][i] = b.word[3][i] = 0;
  }
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < lanes; ++i) {
      const uint64_t p = uint64_t{0xD2511F53} * b.word[0][i], q = uint64_t{0xCD9E8D57} * b.word[2][i];
      const uint32_t w0 = uint32_t(q >> 32) ^ b.word[1][i] ^ key0, w2 = uint32_t(p >> 32) ^ b.word[3][i] ^ key1;
      b.word[0][i] = w0, b.word[1][i] = uint32_t(q), b.word[2][i] = w2, b.word[3][i] = uint32_t(p);
    }
    key0 += 0x9E3779B9, key1 += 0xBB67AE85;
  }
}

dvt_status random_bits(dvt_device*, const dvt_call* c) {
  const uint32_t* key = dvt::data<const uint32_t>(c->in[0]);  // seed lo, hi, offset lo, hi
  const uint32_t key0 = key[0], key1 = key[1];
  const uint64_t offset = uint64_t{key[3]} << 32 | key[2], n = uint64_t(dvt::size(c->out[0]));
  uint32_t* out = dvt::data<uint32_t>(c->out[0]);
  constexpr uint64_t group = 4 * lanes;
  dvt::parallel_for((n + group - 1) / group, 256, [=](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t g = begin; g < end; ++g) {
      Blocks b;
      philox(offset + g * lanes, key0, key1, b);
      const uint64_t first = g * group, count = n - first < group ? n - first : group;
      if (count == group)
        for (uint64_t i = 0; i < group; ++i) out[first + i] = b.word[i % 4][i / 4];
      else
        for (uint64_t i = 0; i < count; ++i) out[first + i] = b.word[i % 4][i / 4];
    }
  });
  return DVT_OK;
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  t.add(dvt::Row("dvt.random_bits", random_bits).in(dvt::u32).out(dvt::u32).deterministic().kernel());
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
