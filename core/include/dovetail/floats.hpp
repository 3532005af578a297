// dovetail/floats.hpp - floats of 16 and 8 bits as element types, and the conversions between any two element
// types. C++17, header-only, for hosts and kernels (portable.hpp).
//
// Every conversion rounds once, to nearest, ties to even. NaN stays NaN: where it becomes narrower it keeps its
// sign and becomes quiet, and float16 and bfloat16 keep the upper bits of its payload, as NumPy, x86 and Arm do.
// The constructors are for results of arithmetic, whose NaN has no specified bits: on NVIDIA GPUs they are one
// instruction, which returns its own NaN. So does the one that widens a float16, whose sign is therefore set again:
// signbit and copysign look at that of NaN.
#ifndef DOVETAIL_FLOATS_HPP
#define DOVETAIL_FLOATS_HPP

#include <type_traits>

#include "dovetail/float8.hpp"
#include "dovetail/portable.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
// ---- bits to and from those of a float32; float8.hpp has the same for 8 bits

constexpr uint16_t bf16_of_nan(uint32_t float32) { return uint16_t(float32 >> 16 | 0x40); }
constexpr uint16_t bf16_of(uint32_t float32) {
  const uint32_t rounded = (float32 + 0x7FFF + (float32 >> 16 & 1)) >> 16, nan = float32 >> 16 | 0x40;
  return uint16_t((float32 & 0x7FFFFFFF) > 0x7F800000 ? nan : rounded);
}
constexpr uint32_t float32_of_bf16(uint16_t bf16) { return uint32_t{bf16} << 16; }

constexpr uint16_t f16_of_nan(uint32_t float32) {
  return uint16_t((float32 >> 16 & 0x8000) | 0x7E00 | (float32 >> 13 & 0x3FF));
}
DVT_FN uint16_t f16_of(uint32_t float32) {
  const uint32_t magnitude = float32 & 0x7FFFFFFF, sign = float32 >> 16 & 0x8000;
  constexpr uint32_t unit = (127 - 15 + 23 - 10 + 1) << 23;  // a float whose last bit is float16's least subnormal
  const uint32_t small = bit_cast<uint32_t>(bit_cast<float>(magnitude) + bit_cast<float>(unit)) - unit;
  const uint32_t normal = (magnitude - ((127 - 15) << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
  const uint32_t nan = 0x7E00 | (magnitude >> 13 & 0x3FF), special = magnitude > 0x7F800000 ? nan : 0x7C00;
  const uint32_t number = magnitude >= (127u + 16) << 23 ? special : magnitude < 113u << 23 ? small : normal;
  return uint16_t(number | sign);
}
DVT_FN uint32_t float32_of_f16(uint16_t f16) {
  const uint32_t magnitude = (f16 & 0x7FFFu) << 13, exponent = magnitude & (0x7C00u << 13);
  const uint32_t normal = magnitude + ((127 - 15) << 23);
  const uint32_t subnormal =
      bit_cast<uint32_t>(bit_cast<float>(magnitude + (113u << 23)) - bit_cast<float>(113u << 23));
  const uint32_t special = (magnitude + ((255 - 31) << 23)) | (magnitude & 0x7FFFFF ? 0x400000 : 0);
  return (exponent == 0x7C00u << 13 ? special : exponent == 0 ? subnormal : normal) | uint32_t(f16 & 0x8000) << 16;
}

// The bits of x as a float32; an inexact one is rounded to the adjacent number with an odd last bit. Rounding that
// to fewer bits gives the same as rounding x.
template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
DVT_FN uint32_t odd_float32_of(T x) {
  const auto f = float(x);
  const T back = f;
  const uint32_t larger = (back < 0 ? -back : back) > (x < 0 ? -x : x);
  return (bit_cast<uint32_t>(f) - larger) | (back < x || back > x);
}
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
DVT_FN uint32_t odd_float32_of(T x) {
  bool negative = false;
  if constexpr (std::is_signed_v<T>) negative = x < 0;
  const uint64_t m = negative ? uint64_t(0) - uint64_t(x) : uint64_t(x);
  const int excess = 40 - leading_zeros(m);  // bits beyond the 24 of a float32
  if (excess <= 0) return bit_cast<uint32_t>(negative ? -float(m) : float(m));
  const uint64_t rest = m & ((uint64_t(1) << excess) - 1);
  const float f = float(m >> excess | (rest != 0)) * bit_cast<float>(uint32_t(127 + excess) << 23);
  return bit_cast<uint32_t>(negative ? -f : f);
}

// ---- element types

struct bfloat16 {
  uint16_t bits;

  bfloat16() = default;
#if defined(__CUDA_ARCH__)
  DVT_FN explicit bfloat16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
#else
  DVT_FN explicit bfloat16(float x) : bits(bf16_of(bit_cast<uint32_t>(x))) {}
#endif
  DVT_FN explicit operator float() const { return bit_cast<float>(float32_of_bf16(bits)); }
};

#if !defined(SYCL_LANGUAGE_VERSION)
struct half {
  uint16_t bits;

  half() = default;
#if defined(__CUDA_ARCH__)
  DVT_FN explicit half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  DVT_FN explicit operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return bit_cast<float>(bit_cast<uint32_t>(x) | uint32_t(bits & 0x8000) << 16);
  }
#else
  DVT_FN explicit half(float x) : bits(f16_of(bit_cast<uint32_t>(x))) {}
  DVT_FN explicit operator float() const { return bit_cast<float>(float32_of_f16(bits)); }
#endif
};
#endif

// By the bits of the significand that it stores. GPUs' own conversions are not used: they saturate.
template <int stored>
struct float8 {
  uint8_t bits;

  float8() = default;
  DVT_FN explicit float8(float x) : bits(float8_of<stored>(bit_cast<uint32_t>(x))) {}
  DVT_FN explicit operator float() const { return bit_cast<float>(float32_of<stored>(bits)); }
};
using float8_e4m3fn = float8<3>;
using float8_e5m2 = float8<2>;

// Floats that kernels compute with in float32.
template <class T>
inline constexpr bool is_narrow = std::is_same_v<T, half> || std::is_same_v<T, bfloat16> ||
                                  std::is_same_v<T, float8_e4m3fn> || std::is_same_v<T, float8_e5m2>;
template <class T>
using Compute = std::conditional_t<is_narrow<T>, float, T>;

// x < 0, without a compiler's warning where T has no negative numbers.
template <class T>
DVT_FN bool is_negative(T x) {
  if constexpr (std::is_unsigned_v<T>) return false;
  else return x < 0;
}

// An element that is copied and not looked at.
struct alignas(16) bits128 {
  uint64_t half[2];
};

// ---- sums and conversions

// A sum that adds up its own rounding errors. `lost` becomes NaN after infinities. It begins with -0, which changes
// no number, not even -0.
template <class T>
struct CompensatedSum {
  T value, lost;

  static DVT_FN CompensatedSum nothing() { return {-T(0), T(0)}; }
  DVT_FN void add(T x) {
    const T sum = value + x, part = sum - value;
    lost += (value - (sum - part)) + (x - part);
    value = sum;
  }
  DVT_FN void scale(T factor) { value *= factor, lost *= factor; }
  static DVT_FN CompensatedSum join(CompensatedSum a, const CompensatedSum& b) {
    a.add(b.value);
    a.lost += b.lost;
    return a;
  }
  DVT_FN T total() const { return lost == lost && lost != 0 ? value + lost : value; }
};

// x as a narrow float.
template <class To>
DVT_FN To narrowed(float x) {
  To y(x);
#if defined(__CUDA_ARCH__)
  const uint32_t bits = bit_cast<uint32_t>(x);
  if constexpr (std::is_same_v<To, bfloat16>) y.bits = x != x ? bf16_of_nan(bits) : y.bits;
  else if constexpr (std::is_same_v<To, half>) y.bits = x != x ? f16_of_nan(bits) : y.bits;
#endif
  return y;
}

// x as a To. Floats lose their fraction on the way to integers, integers wrap, and NaN becomes true.
template <class To, class From>
DVT_FN To convert(From x) {
  if constexpr (std::is_same_v<To, From>) return x;
  else if constexpr (is_narrow<From>) return convert<To>(float(x));
  else if constexpr (std::is_same_v<To, bool>) return x != From(0);
  else if constexpr (std::is_same_v<From, bool>) return To(x ? 1.0f : 0.0f);
  else if constexpr (is_narrow<To>) {
    if constexpr (std::is_same_v<From, float>) return narrowed<To>(x);
    else if constexpr (std::is_integral_v<From>) return To(bit_cast<float>(odd_float32_of(x)));
    else return narrowed<To>(bit_cast<float>(odd_float32_of(x)));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if (!(x > From(-9.3e18) && x < From(1.9e19))) return 0;  // unspecified for these, and for NaN
    return x < 0 ? To(int64_t(x)) : To(uint64_t(x));
  } else return To(x);
}
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt

// X(suffix, type) for each type of a list; suffixes are the words of types.hpp.
#define DVT_SIGNED(X) X(i8, int8_t) X(i16, int16_t) X(i32, int32_t) X(i64, int64_t)
#define DVT_UNSIGNED(X) X(u8, uint8_t) X(u16, uint16_t) X(u32, uint32_t) X(u64, uint64_t)
#define DVT_INTEGERS(X) DVT_SIGNED(X) DVT_UNSIGNED(X)
#define DVT_FLOATS(X) X(f16, dvt::half) X(bf16, dvt::bfloat16) X(f32, float) X(f64, double)
#define DVT_NUMBERS(X) DVT_INTEGERS(X) DVT_FLOATS(X)
#define DVT_ALL(X) X(bool, bool) DVT_NUMBERS(X)
#define DVT_FLOATS8(X) X(f8e4m3fn, dvt::float8_e4m3fn) X(f8e5m2, dvt::float8_e5m2)
// For kernels that copy elements and do not look at them.
#define DVT_SIZES(X) X(x8, uint8_t) X(x16, uint16_t) X(x32, uint32_t) X(x64, uint64_t) X(x128, dvt::bits128)
#endif  // DOVETAIL_FLOATS_HPP
