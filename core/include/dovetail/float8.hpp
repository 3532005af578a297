// dovetail/float8.hpp - floats of 8 bits and fewer as bits, from and to those of a float32. C++17, header-only,
// integers alone: kernels of any device can include it, and compilers make vectors of its loops.
#ifndef DOVETAIL_FLOAT8_HPP
#define DOVETAIL_FLOAT8_HPP

#include <cstdint>

#ifndef DVT_CODE_NAMESPACE  // see backend.hpp
#define DVT_CODE_NAMESPACE common
#endif

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
// The parameter `stored` is the number of stored significand bits. Rounds a magnitude to the nearest, ties to even,
// as if exponents went on for ever.
template <int stored, uint32_t bias>
constexpr uint32_t narrow_magnitude(uint32_t magnitude) {
  constexpr uint32_t cut = 23 - stored, rebias = 127 - bias;
  const uint32_t exponent = magnitude >> 23;
  const uint32_t places = exponent > rebias ? 0 : rebias + 1 - exponent;  // by which it is subnormal
  const uint32_t shift = cut + (places < 8 ? places : 8);
  const uint32_t kept = exponent > rebias ? magnitude - (rebias << 23) : (magnitude & 0x7FFFFF) | 0x800000;
  return (kept + ((1u << (shift - 1)) - 1) + (kept >> shift & 1)) >> shift;
}

// Exact, for magnitudes of less than 8 bits.
template <int stored, uint32_t bias>
constexpr uint32_t wide_magnitude(uint32_t magnitude) {
  constexpr uint32_t cut = 23 - stored, rebias = 127 - bias;
  const uint32_t first = magnitude > 3 ? 2 : magnitude > 1;  // of a subnormal number: the place of its first bit
  const uint32_t subnormal = ((rebias + 1 - stored + first) << 23) + (magnitude << (23 - first) & 0x7FFFFF);
  return magnitude >> stored ? (magnitude << cut) + (rebias << 23) : magnitude ? subnormal : 0;
}

// ---- float8_e4m3fn and float8_e5m2: 3 and 2 stored bits
template <int stored>
inline constexpr uint32_t float8_bias = stored == 3 ? 7 : 15;
// The first magnitude that is not finite: e4m3fn has no infinity, but a NaN in its place.
template <int stored>
inline constexpr uint32_t float8_beyond = stored == 3 ? 0x7F : 0x7C;

// Too large numbers become infinity, or NaN where there is none.
template <int stored>
constexpr uint8_t float8_of(uint32_t float32) {
  constexpr uint32_t beyond = float8_beyond<stored>;
  const uint32_t magnitude = float32 & 0x7FFFFFFF,
                 rounded = narrow_magnitude<stored, float8_bias<stored>>(magnitude);
  const uint32_t limited = magnitude >= 143u << 23 || rounded > beyond ? beyond : rounded;  // 2^16 is too large
  return uint8_t((magnitude > 255u << 23 ? 0x7F : limited) | (float32 >> 24 & 0x80));
}

template <int stored>
constexpr uint32_t float32_of(uint8_t float8) {
  constexpr uint32_t beyond = float8_beyond<stored>;
  const uint32_t magnitude = float8 & 0x7F, number = wide_magnitude<stored, float8_bias<stored>>(magnitude);
  const uint32_t special = stored == 3 || magnitude > beyond ? 0x7FC00000 : 0x7F800000;
  return (magnitude >= beyond ? special : number) | uint32_t(float8 & 0x80) << 24;
}

// ---- float8_e4m3fnuz and float8_e5m2fnuz: no -0, a NaN in its place, which too large numbers become
template <int stored>
constexpr uint8_t fnuz_of(uint32_t float32) {
  const uint32_t magnitude = float32 & 0x7FFFFFFF;
  const uint32_t rounded = narrow_magnitude<stored, float8_bias<stored> + 1>(magnitude);
  const bool beyond = magnitude >= 143u << 23 || rounded > 0x7F;
  return uint8_t(beyond ? 0x80 : rounded ? rounded | (float32 >> 24 & 0x80) : 0);
}

template <int stored>
constexpr uint32_t float32_of_fnuz(uint8_t fnuz) {
  const uint32_t number = wide_magnitude<stored, float8_bias<stored> + 1>(fnuz & 0x7F);
  return fnuz == 0x80 ? 0x7FC00000 : number | uint32_t(fnuz & 0x80) << 24;
}

// ---- float8_e8m0fnu: the powers of two from 2^-127 to 2^127, and a NaN
// To the nearest power, ties to the larger one; NaN for what is not positive or too large.
constexpr uint8_t e8m0_of(uint32_t float32) {
  const uint32_t power = float32 < 1u << 23 ? float32 >= 0x600000 : (float32 + 0x400000) >> 23;
  return uint8_t(float32 - 1 >= 0x7F7FFFFF || power > 254 ? 255 : power);
}

constexpr uint32_t float32_of_e8m0(uint8_t e8m0) {
  return e8m0 == 255 ? 0x7FC00000 : e8m0 ? uint32_t(e8m0) << 23 : 0x400000;
}

// ---- float4_e2m1fn, in the lower half of a byte: neither infinity nor NaN
// Too large numbers become 6 or -6, NaN -0.
constexpr uint8_t e2m1_of(uint32_t float32) {
  const uint32_t magnitude = float32 & 0x7FFFFFFF, rounded = narrow_magnitude<1, 1>(magnitude);
  const uint32_t limited = magnitude >= 143u << 23 || rounded > 7 ? 7 : rounded;
  return uint8_t(magnitude > 255u << 23 ? 8 : limited | (float32 >> 28 & 8));
}

constexpr uint32_t float32_of_e2m1(uint8_t e2m1) {
  return wide_magnitude<1, 1>(e2m1 & 7) | uint32_t(e2m1 & 8) << 28;
}
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_FLOAT8_HPP
