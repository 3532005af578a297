// float8_e4m3fn and float8_e5m2: storage types, exact widening, narrowing with one rounding to nearest even.
// Without branches, so that loops of them become vectors.
#pragma once
#include "simd/half.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
// By the bits of the significand that it stores: 3 or 2.
template <int stored>
struct float8 {
  uint8_t bits;
};
using f8e4m3fn = float8<3>;
using f8e5m2 = float8<2>;

template <int stored>
DOVETAIL_CPU_INLINE float widen(float8<stored> x) {
  constexpr uint32_t bias = stored == 3 ? 7 : 15, least = (128 - bias) << 23, infinity = stored == 3 ? 0x7f : 0x7c;
  const uint32_t magnitude = x.bits & 0x7fu, moved = magnitude << (23 - stored);
  const float normal = bit_cast<float>(moved + ((127 - bias) << 23));
  const float subnormal = bit_cast<float>(moved + least) - bit_cast<float>(least);
  const float special = bit_cast<float>(stored == 3 || magnitude > infinity ? 0x7fc00000u : 0x7f800000u);
  const float value = magnitude >= infinity ? special : magnitude >> stored ? normal : subnormal;
  return bit_cast<float>(bit_cast<uint32_t>(value) | (x.bits & 0x80u) << 24);
}

// What is too large becomes infinity, which float8_e4m3fn has not: NaN.
template <int stored>
DOVETAIL_CPU_INLINE float8<stored> narrow_float8(float x) {
  constexpr uint32_t bias = stored == 3 ? 7 : 15, beyond = stored == 3 ? 0x7f : 0x7c, cut = 23 - stored;
  const uint32_t u = bit_cast<uint32_t>(x), magnitude = u & 0x7fffffff;
  // Added to a number whose last bit is worth the smallest subnormal one, what is smaller is rounded by the
  // processor.
  constexpr uint32_t place = (127 - bias + 23 - stored + 1) << 23;
  const uint32_t small = bit_cast<uint32_t>(bit_cast<float>(magnitude) + bit_cast<float>(place)) - place;
  const uint32_t normal =
      (magnitude - ((127 - bias) << 23) + ((1u << (cut - 1)) - 1) + (magnitude >> cut & 1)) >> cut;
  const uint32_t finite = magnitude < (128 - bias) << 23 ? small : normal;
  const uint32_t limited = magnitude >= 0x47800000u || finite > beyond ? beyond : finite;  // 2^16: both end before
  return {uint8_t((magnitude > 0x7f800000u ? 0x7f : limited) | (u >> 24 & 0x80))};
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
