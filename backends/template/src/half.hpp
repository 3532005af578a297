// The floats of 16 and of 8 bits. The device computes with none: bodies run in float32, and astype gets there and
// back.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "dovetail/types.hpp"

using f16 = dvt::float16;
struct bf16 {
  uint16_t bits;

  bf16() = default;
  explicit bf16(double x) {  // rounded once, to nearest even
    float f = float(x);
    uint32_t b;
    std::memcpy(&b, &f, 4);
    if (f != f) {
      bits = uint16_t(b >> 16 | 0x40);
      return;
    }
    if (std::isfinite(f) && double(f) != x) b = (b - (std::fabs(double(f)) > std::fabs(x))) | 1;  // inexact
    bits = uint16_t((b + 0x7FFF + (b >> 16 & 1)) >> 16);
  }
  explicit operator float() const {
    const uint32_t b = uint32_t{bits} << 16;
    float f;
    std::memcpy(&f, &b, 4);
    return f;
  }
};

// By the bits of the significand that it stores.
template <int stored>
struct float8 {
  uint8_t bits;

  float8() = default;
  explicit float8(double x) : bits(dvt::types::float8_bits<stored>(x)) {}
  explicit operator float() const {
    const uint32_t b = dvt::float32_of<stored>(bits);
    float f;
    std::memcpy(&f, &b, 4);
    return f;
  }
};
using f8e4m3fn = float8<3>;
using f8e5m2 = float8<2>;

template <class T>
constexpr bool is_half =
    std::is_same_v<T, f16> || std::is_same_v<T, bf16> || std::is_same_v<T, f8e4m3fn> || std::is_same_v<T, f8e5m2>;
template <class T>
constexpr DLDataType type_of() {
  if constexpr (std::is_same_v<T, f16>) return dvt::f16;
  else if constexpr (std::is_same_v<T, bf16>) return dvt::bf16;
  else if constexpr (std::is_same_v<T, f8e4m3fn>) return dvt::f8e4m3fn;
  else if constexpr (std::is_same_v<T, f8e5m2>) return dvt::f8e5m2;
  else return dvt::dtype_of<T>();
}

// A number of any type as one of any other. Floats lose their fraction on the way to integers; integers wrap.
template <class To, class From>
To convert(From x) {
  if constexpr (is_half<From>) return convert<To>(float(x));
  else if constexpr (std::is_same_v<To, bool>) return x != 0;
  else if constexpr (is_half<To>) return To(double(x));
  else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if (!(x > From(-9.3e18) && x < From(1.9e19))) return 0;  // any value will do; NaN comes here too
    return x < 0 ? To(int64_t(x)) : To(uint64_t(x));
  } else return To(x);
}
