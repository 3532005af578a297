// Element types: floats of 16 and of 8 bits, which are computed with in float32, and lists of types for macros.
#pragma once
#include <cstdint>
#include <type_traits>

#include "dovetail/float8.hpp"
#include "kernels/common/kernel.hpp"

namespace xpu {
using half = sycl::half;

// By hand: sycl's own bfloat16 leaves an unresolved symbol in kernels (intel-sycl-rt 2026.2).
struct bf16 {
  uint16_t bits;

  bf16() = default;
  explicit bf16(float x) {  // to nearest, ties to even
    const uint32_t b = sycl::bit_cast<uint32_t>(x);
    bits = x != x ? uint16_t(b >> 16 | 0x40) : uint16_t((b + 0x7FFF + (b >> 16 & 1)) >> 16);
  }
  explicit operator float() const { return sycl::bit_cast<float>(uint32_t{bits} << 16); }
};
// By the bits of the significand that it stores.
template <int stored>
struct float8 {
  uint8_t bits;

  float8() = default;
  explicit float8(float x) : bits(dvt::float8_of<stored>(sycl::bit_cast<uint32_t>(x))) {}
  explicit operator float() const { return sycl::bit_cast<float>(dvt::float32_of<stored>(bits)); }
};
using f8e4m3fn = float8<3>;
using f8e5m2 = float8<2>;
struct bits128 {
  uint64_t half[2];
};

template <class T>
inline constexpr bool is_narrow =
    std::is_same_v<T, half> || std::is_same_v<T, bf16> || std::is_same_v<T, f8e4m3fn> || std::is_same_v<T, f8e5m2>;
template <class T>
using Compute = std::conditional_t<is_narrow<T>, float, T>;
}  // namespace xpu

// X(suffix, type) for each type of a list; the suffix ends a kernel's name.
#define XPU_SIGNED(X) X(i8, int8_t) X(i16, int16_t) X(i32, int32_t) X(i64, int64_t)
#define XPU_UNSIGNED(X) X(u8, uint8_t) X(u16, uint16_t) X(u32, uint32_t) X(u64, uint64_t)
#define XPU_INTEGERS(X) XPU_SIGNED(X) XPU_UNSIGNED(X)
#define XPU_FLOATS(X) X(f16, xpu::half) X(bf16, xpu::bf16) X(f32, float) X(f64, double)
#define XPU_NUMBERS(X) XPU_INTEGERS(X) XPU_FLOATS(X)
#define XPU_ALL(X) X(bool, bool) XPU_NUMBERS(X)
#define XPU_FLOATS8(X) X(f8e4m3fn, xpu::f8e4m3fn) X(f8e5m2, xpu::f8e5m2)
// For kernels that move elements and do not look at them.
#define XPU_SIZES(X) X(x8, uint8_t) X(x16, uint16_t) X(x32, uint32_t) X(x64, uint64_t) X(x128, xpu::bits128)
