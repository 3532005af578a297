// dovetail/float8.hpp - float8_e4m3fn and float8_e5m2 as bits, from and to those of a float32. C++17, header-only,
// integers alone: kernels of any device can include it, and compilers make vectors of its loops.
#ifndef DOVETAIL_FLOAT8_HPP
#define DOVETAIL_FLOAT8_HPP

#include <cstdint>

#ifndef DVT_CODE_NAMESPACE  // see backend.hpp
#define DVT_CODE_NAMESPACE common
#endif

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
// The parameter `stored` is the number of stored significand bits: 3 or 2.
template <int stored>
inline constexpr uint32_t float8_bias = stored == 3 ? 7 : 15;
// The first magnitude that is not finite: e4m3fn has no infinity, but a NaN in its place.
template <int stored>
inline constexpr uint32_t float8_beyond = stored == 3 ? 0x7F : 0x7C;

// Rounds to nearest, ties to even. Too large numbers become infinity, or NaN where there is none.
template <int stored>
constexpr uint8_t float8_of(uint32_t float32) {
  constexpr uint32_t cut = 23 - stored, rebias = 127 - float8_bias<stored>, beyond = float8_beyond<stored>;
  const uint32_t magnitude = float32 & 0x7FFFFFFF, exponent = magnitude >> 23;
  const uint32_t places = exponent > rebias ? 0 : rebias + 1 - exponent;  // by which it is subnormal
  const uint32_t shift = cut + (places < 8 ? places : 8);
  const uint32_t kept = exponent > rebias ? magnitude - (rebias << 23) : (magnitude & 0x7FFFFF) | 0x800000;
  const uint32_t rounded = (kept + ((1u << (shift - 1)) - 1) + (kept >> shift & 1)) >> shift;
  const uint32_t limited = magnitude >= 143u << 23 || rounded > beyond ? beyond : rounded;  // 2^16 is too large
  return uint8_t((magnitude > 255u << 23 ? 0x7F : limited) | (float32 >> 24 & 0x80));
}

// Exact.
template <int stored>
constexpr uint32_t float32_of(uint8_t float8) {
  constexpr uint32_t cut = 23 - stored, rebias = 127 - float8_bias<stored>, beyond = float8_beyond<stored>;
  const uint32_t magnitude = float8 & 0x7F;
  const uint32_t first = magnitude > 3 ? 2 : magnitude > 1;  // of a subnormal number: the place of its first bit
  const uint32_t subnormal = ((rebias + 1 - stored + first) << 23) + (magnitude << (23 - first) & 0x7FFFFF);
  const uint32_t number = magnitude >> stored ? (magnitude << cut) + (rebias << 23) : magnitude ? subnormal : 0;
  const uint32_t special = stored == 3 || magnitude > beyond ? 0x7FC00000 : 0x7F800000;
  return (magnitude >= beyond ? special : number) | uint32_t(float8 & 0x80) << 24;
}
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_FLOAT8_HPP
