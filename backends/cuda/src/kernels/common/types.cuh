// Element types: floats of 16 and of 8 bits, which are computed with in float32, and lists of types for macros.
#pragma once
#include "dovetail/float8.hpp"
#include "kernels/common/kernel.cuh"
#include "kernels/common/pack.hpp"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
// IEEE's binary16, as it is stored. GPUs and the emulator round to nearest even.
struct half {
  uint16_t bits;

  half() = default;
#if defined(GPU_EMULATED)
  explicit half(float x) : bits(bit_cast<uint16_t>(_Float16(x))) {}
  explicit operator float() const { return float(bit_cast<_Float16>(bits)); }
#else
  explicit __device__ half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  explicit __device__ operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
#endif
};

struct bf16 {
  uint16_t bits;

  bf16() = default;
  explicit __device__ bf16(float x) {
#if defined(GPU_EMULATED)
    const uint32_t b = bit_cast<uint32_t>(x);
    bits = x != x ? uint16_t(0x7FFF) : uint16_t((b + 0x7FFF + (b >> 16 & 1)) >> 16);
#else
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#endif
  }
  explicit __device__ operator float() const { return bit_cast<float>(uint32_t{bits} << 16); }
};

// By the bits of the significand that it stores. Not the conversions that GPUs have: those saturate.
template <int stored>
struct float8 {
  uint8_t bits;

  float8() = default;
  explicit __device__ float8(float x) : bits(dvt::float8_of<stored>(bit_cast<uint32_t>(x))) {}
  explicit __device__ operator float() const { return bit_cast<float>(dvt::float32_of<stored>(bits)); }
};
using f8e4m3fn = float8<3>;
using f8e5m2 = float8<2>;

struct alignas(16) bits128 {
  uint64_t half[2];
};

template <class T>
inline constexpr bool is_narrow =
    std::is_same_v<T, half> || std::is_same_v<T, bf16> || std::is_same_v<T, f8e4m3fn> || std::is_same_v<T, f8e5m2>;
template <class T>
using Compute = std::conditional_t<is_narrow<T>, float, T>;

// x < 0; nvcc warns where that can never be.
template <class T>
__device__ __forceinline__ bool is_negative(T x) {
  if constexpr (std::is_unsigned_v<T>) return false;
  else return x < 0;
}

// Neighbours that are read or written at once.
template <class T, int n>
struct alignas(sizeof(T) * n) Pack {
  T at[n];
};
}  // namespace gpu
#endif

// X(suffix, type) for each type of a list; the suffix ends a kernel's name.
#define GPU_SIGNED(X) X(i8, int8_t) X(i16, int16_t) X(i32, int32_t) X(i64, int64_t)
#define GPU_UNSIGNED(X) X(u8, uint8_t) X(u16, uint16_t) X(u32, uint32_t) X(u64, uint64_t)
#define GPU_INTEGERS(X) GPU_SIGNED(X) GPU_UNSIGNED(X)
#define GPU_FLOATS(X) X(f16, gpu::half) X(bf16, gpu::bf16) X(f32, float) X(f64, double)
#define GPU_NUMBERS(X) GPU_INTEGERS(X) GPU_FLOATS(X)
#define GPU_ALL(X) X(bool, bool) GPU_NUMBERS(X)
#define GPU_FLOATS8(X) X(f8e4m3fn, gpu::f8e4m3fn) X(f8e5m2, gpu::f8e5m2)
// For kernels that move elements and do not look at them.
#define GPU_SIZES(X) X(x8, uint8_t) X(x16, uint16_t) X(x32, uint32_t) X(x64, uint64_t) X(x128, gpu::bits128)
