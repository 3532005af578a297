// float8_e4m3fn and float8_e5m2: storage types, exact widening, narrowing with one rounding to nearest even.
#pragma once
#include "dovetail/float8.hpp"
#include "simd/half.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
// By the number of stored significand bits: 3 or 2.
template <int stored>
struct float8 {
  uint8_t bits;
};
using f8e4m3fn = float8<3>;
using f8e5m2 = float8<2>;

template <int stored>
DOVETAIL_CPU_INLINE float widen(float8<stored> x) {
  return bit_cast<float>(dvt::float32_of<stored>(x.bits));
}
template <int stored>
DOVETAIL_CPU_INLINE float8<stored> narrow_float8(float x) {
  return {dvt::float8_of<stored>(bit_cast<uint32_t>(x))};
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
