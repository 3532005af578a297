// dovetail/float16.hpp - dvt::float16, the C++ type of float16: the compiler's own where it has one, else a class
// that stores the bits, converts from and to the other arithmetic types, and computes as float. C++17, header-only.
#ifndef DOVETAIL_FLOAT16_HPP
#define DOVETAIL_FLOAT16_HPP

#include <cstdint>
#include <cstring>
#include <type_traits>

#ifndef DVT_CODE_NAMESPACE  // see backend.hpp
#define DVT_CODE_NAMESPACE common
#endif

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
struct software_float16 {
  uint16_t bits;

  software_float16() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  software_float16(T x) : bits(of(double(x))) {}
  operator float() const {
    const uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3FF, sign = uint32_t(bits >> 15) << 31;
    const float magnitude = float(fraction) * 0x1p-24f;  // what it is where the exponent is 0
    uint32_t b;
    std::memcpy(&b, &magnitude, 4);
    if (exponent) b = (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    b |= sign;
    float x;
    std::memcpy(&x, &b, 4);
    return x;
  }

 private:
  static uint16_t of(double x) {  // rounds to nearest, ties to even
    uint64_t b;
    std::memcpy(&b, &x, 8);
    const uint64_t fraction = b & ((uint64_t{1} << 52) - 1);
    const int exponent = int(b >> 52 & 0x7FF) - 1008;  // of float16: 1 to 30 are normal
    const uint16_t sign = uint16_t(b >> 48 & 0x8000);
    if (exponent == 0x7FF - 1008 && fraction) return sign | 0x7E00;  // NaN
    if (exponent > 30) return sign | 0x7C00;
    if (exponent < -11) return sign;
    const int shift = exponent > 0 ? 42 : 43 - exponent;
    const uint64_t kept = fraction | (exponent > 0 ? uint64_t(exponent) : 1) << 52;
    return uint16_t(sign | (kept + ((uint64_t{1} << (shift - 1)) - 1) + (kept >> shift & 1)) >> shift);
  }
};

// Before 13, g++ has _Float16 for aarch64 in C only; __fp16 is stored and rounds as it does. clang has it for x86
// from 15 on.
#if defined(__aarch64__) && !defined(__clang__) && __GNUC__ < 13
using float16 = __fp16;
#elif defined(__FLT16_MAX__)
using float16 = _Float16;
#else
using float16 = software_float16;
#endif
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt

#endif
