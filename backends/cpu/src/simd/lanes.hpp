// A vector of floats, its bits, and what elementary functions of it are made of.
#pragma once
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstring>
#include <experimental/simd>

#include "kernel.hpp"

// Levels whose processors multiply and add in one instruction, which rounds once. At others the C library, which
// chooses its code by the processor, takes less time for most functions of float64.
#if defined(__FMA__) || defined(__aarch64__)
#define DOVETAIL_CPU_FMA
#endif

namespace dovetail::cpu::DOVETAIL_CPU_ISA::math {
namespace stdx = std::experimental;
using V = stdx::native_simd<float>;
using I = stdx::rebind_simd_t<int32_t, V>;
using U = stdx::rebind_simd_t<uint32_t, V>;
using Mask = V::mask_type;
static_assert(V::size() == I::size() && V::size() == U::size());
constexpr int64_t width = V::size();
constexpr float infinity = __builtin_inff();

template <class To = U>
DOVETAIL_CPU_INLINE To bits(V x) {
  To i;
  std::memcpy(static_cast<void*>(&i), &x, sizeof i);
  return i;
}
template <class From>
DOVETAIL_CPU_INLINE V from_bits(From i) {
  V x;
  static_assert(sizeof i == sizeof x);
  std::memcpy(static_cast<void*>(&x), &i, sizeof x);
  return x;
}
DOVETAIL_CPU_INLINE V select(Mask m, V a, V b) {
  stdx::where(m, b) = a;
  return b;
}
DOVETAIL_CPU_INLINE V abs(V x) { return from_bits(bits(x) & 0x7fffffffu); }
DOVETAIL_CPU_INLINE V minus_abs(V x) { return from_bits(bits(x) | 0x80000000u); }
DOVETAIL_CPU_INLINE V copysign(V magnitude, V sign) {
  return from_bits((bits(magnitude) & 0x7fffffffu) | (bits(sign) & 0x80000000u));
}
// y with the sign of x; y has that already or none.
DOVETAIL_CPU_INLINE V with_sign(V y, V x) { return from_bits(bits(y) | (bits(x) & 0x80000000u)); }
DOVETAIL_CPU_INLINE Mask is_nan(V x) { return x != x; }

#if defined(__AVX2__)
// a b + c, rounded once: where it matters which product is not rounded.
DOVETAIL_CPU_INLINE V multiply_add(V a, V b, V c) {
#if defined(__AVX512F__)
  return V(_mm512_fmadd_ps(static_cast<__m512>(a), static_cast<__m512>(b), static_cast<__m512>(c)));
#else
  return V(_mm256_fmadd_ps(static_cast<__m256>(a), static_cast<__m256>(b), static_cast<__m256>(c)));
#endif
}
// y; where a is tiny, erf a, which rounds once if it is subnormal.
DOVETAIL_CPU_INLINE V erf_or_tiny(V a, V y) { return select(a < 0x1p-100f, multiply_add(a, 0.128379166f, a), y); }
#endif

// c[0] + c[1] x + c[2] x^2 + ...
template <size_t k = 0, class X, size_t n, class C>
DOVETAIL_CPU_INLINE X polynomial(X x, const C (&c)[n]) {
  if constexpr (k + 1 == n) return X(c[k]);
  else return polynomial<k + 1>(x, c) * x + c[k];
}

// NaN stays NaN; x86 has an instruction for it.
DOVETAIL_CPU_INLINE V at_least(float low, V x) {
#if defined(__AVX512F__)
  return V(_mm512_max_ps(_mm512_set1_ps(low), static_cast<__m512>(x)));
#elif defined(__AVX2__)
  return V(_mm256_max_ps(_mm256_set1_ps(low), static_cast<__m256>(x)));
#else
  return select(x < low, low, x);
#endif
}
DOVETAIL_CPU_INLINE V at_most(V high, V x) {
#if defined(__AVX512F__)
  return V(_mm512_min_ps(static_cast<__m512>(high), static_cast<__m512>(x)));
#elif defined(__AVX2__)
  return V(_mm256_min_ps(static_cast<__m256>(high), static_cast<__m256>(x)));
#else
  return select(x > high, high, x);
#endif
}
DOVETAIL_CPU_INLINE V clamp_number(V x, float low, float high) { return at_most(high, at_least(low, x)); }
DOVETAIL_CPU_INLINE V clamp(V x, float low, float high) { return stdx::min(stdx::max(V(low), x), V(high)); }
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::math
