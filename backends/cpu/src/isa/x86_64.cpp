// x86-64 by CPUID.
#include <cpuid.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "isa.hpp"

namespace dovetail::cpu {
namespace {
struct Leaf {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  Leaf(uint32_t leaf, uint32_t sub = 0) {
    if (!__get_cpuid_count(leaf, sub, &a, &b, &c, &d)) a = b = c = d = 0;
  }
};
constexpr bool all(uint32_t word, uint32_t bits) { return (word & bits) == bits; }
constexpr uint32_t bit(int i) { return uint32_t{1} << i; }

// The registers that the operating system saves: XCR0.
uint64_t saved_state() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

void read_name(char* name) {
  if (Leaf(0x80000000).a < 0x80000004) return;
  for (uint32_t i = 0; i < 3; ++i) {
    const Leaf part(0x80000002 + i);
    std::memcpy(name + 16 * i, &part, 16);
  }
  name[48] = 0;
  size_t start = 0, end = std::strlen(name);
  while (name[start] == ' ') ++start;
  while (end > start && name[end - 1] == ' ') --end;
  std::memmove(name, name + start, end - start);
  name[end - start] = 0;
}
}  // namespace

Features read_features() {
  Features f;
  read_name(f.name);
  const Leaf one(1), seven(7), seven_one(7, 1), extended(0x80000001);
  // v2: SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
  if (!all(one.c, bit(0) | bit(9) | bit(13) | bit(19) | bit(20) | bit(23)) || !all(extended.c, bit(0))) return f;
  f.level = Level::baseline;
  const uint64_t saved = all(one.c, bit(27)) ? saved_state() : 0;
  // v3: FMA, MOVBE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT; saved ymm
  if ((saved & 6) != 6 || !all(one.c, bit(12) | bit(22) | bit(28) | bit(29)) ||
      !all(seven.b, bit(3) | bit(5) | bit(8)) || !all(extended.c, bit(5)))
    return f;
  f.level = Level::avx2;
  f.add_extra("avx_vnni", all(seven_one.a, bit(4)));
  // v4: AVX512 F, DQ, CD, BW, VL; saved zmm
  if ((saved & 0xe6) != 0xe6 || !all(seven.b, bit(16) | bit(17) | bit(28) | bit(30) | bit(31))) return f;
  f.level = Level::avx512;
  f.bf16_products = all(seven_one.a, bit(5));
  f.int8_products = all(seven.c, bit(11));
  f.add_extra("avx512_vnni", f.int8_products);
  f.add_extra("avx512_bf16", f.bf16_products);
  f.add_extra("avx512_fp16", all(seven.d, bit(23)));
  if ((saved & 0x60000) != 0x60000) return f;  // tiles saved
  f.add_extra("amx_tile", all(seven.d, bit(24)));
  f.add_extra("amx_int8", all(seven.d, bit(25)));
  f.add_extra("amx_bf16", all(seven.d, bit(22)));
  f.add_extra("amx_fp16", all(seven_one.a, bit(21)));
  f.tiles = all(seven.d, bit(22) | bit(24) | bit(25));
  return f;
}

std::span<const LevelName> level_names() {
  static constexpr LevelName names[] = {
      {"default", "x86-64-v2"}, {"avx2", "x86-64-v3 (avx2)"}, {"avx512", "x86-64-v4 (avx512)"}};
  return names;
}
}  // namespace dovetail::cpu
