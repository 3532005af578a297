// float16 and bfloat16: storage types, exact widening, narrowing with one rounding to nearest even.
#pragma once
#include <experimental/simd>

#include "dovetail/floats.hpp"
#include "kernel.hpp"
#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

using dvt::bit_cast;

DOVETAIL_CPU_INLINE float widen(bf16 x) { return bit_cast<float>(dvt::float32_of_bf16(x.bits)); }
DOVETAIL_CPU_INLINE float widen(f16 x) {
#if defined(__F16C__)
  return _cvtsh_ss(x.bits);
#elif defined(__aarch64__)
  return float(bit_cast<__fp16>(x.bits));  // such loops become FCVTL
#else
  return bit_cast<float>(dvt::float32_of_f16(x.bits));
#endif
}

template <class Half>
Half narrow(float);
template <>
DOVETAIL_CPU_INLINE bf16 narrow<bf16>(float x) {
#if defined(__ARM_FEATURE_BF16_SCALAR_ARITHMETIC)
  return bit_cast<bf16>(vcvth_bf16_f32(x));
#else
  return {dvt::bf16_of(bit_cast<uint32_t>(x))};
#endif
}
template <>
DOVETAIL_CPU_INLINE f16 narrow<f16>(float x) {
#if defined(__F16C__)
  return {uint16_t(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT))};
#elif defined(__aarch64__)
  return bit_cast<f16>(__fp16(x));
#else
  return {dvt::f16_of(bit_cast<uint32_t>(x))};
#endif
}

// x rounded to float with the lowest bit set if that is inexact: rounding the result further rounds x once.
DOVETAIL_CPU_INLINE float to_odd(double x) { return bit_cast<float>(dvt::odd_float32_of(x)); }

// The floats of a vector of the level.
inline constexpr int floats = int(std::experimental::native_simd<float>::size());
// One vector in registers. N floats of 4 N bytes.
template <int N>
struct VectorOf {
  typedef float Floats __attribute__((vector_size(4 * N)));
  typedef uint32_t Bits __attribute__((vector_size(4 * N)));
  typedef uint16_t Halves __attribute__((vector_size(2 * N)));
};
template <int N>
DOVETAIL_CPU_INLINE typename VectorOf<N>::Floats load_floats(const float* from) {
  typename VectorOf<N>::Floats x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
template <int N>
DOVETAIL_CPU_INLINE typename VectorOf<N>::Floats load_floats(const bf16* from) {
  typename VectorOf<N>::Halves x;
  std::memcpy(&x, from, sizeof x);
  typename VectorOf<N>::Bits bits;
#if defined(__AVX512F__)  // GCC converts the halves of a vector on their own
  if constexpr (N == 16) bits = bit_cast<typename VectorOf<N>::Bits>(_mm512_cvtepu16_epi32(bit_cast<__m256i>(x)));
  else
#endif
#if defined(__AVX2__)
      if constexpr (N == 8)
    bits = bit_cast<typename VectorOf<N>::Bits>(_mm256_cvtepu16_epi32(bit_cast<__m128i>(x)));
  else
#endif
    bits = __builtin_convertvector(x, typename VectorOf<N>::Bits);
  return bit_cast<typename VectorOf<N>::Floats>(bits << 16);
}
template <int N>
DOVETAIL_CPU_INLINE typename VectorOf<N>::Floats load_floats(const f16* from) {
#if defined(__AVX512F__)
  if constexpr (N == 16) return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#endif
#if defined(__F16C__)
  if constexpr (N == 8) return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#endif
#if defined(__aarch64__)
  if constexpr (N == 4) return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&from->bits)));
#endif
  typename VectorOf<N>::Floats x;
  for (int i = 0; i < N; ++i) x[i] = widen(from[i]);
  return x;
}
template <int N>
DOVETAIL_CPU_INLINE void store_floats(typename VectorOf<N>::Floats x, float* to) {
  std::memcpy(to, &x, sizeof x);
}
template <int N>
DOVETAIL_CPU_INLINE void store_floats(typename VectorOf<N>::Floats x, bf16* to) {
  using Halves = typename VectorOf<N>::Halves;
  const auto bits = bit_cast<typename VectorOf<N>::Bits>(x);
  const auto kept = (x == x ? bits + 0x7FFF + (bits << 15 >> 31) : bits | 0x400000) >> 16;
  Halves y;
#if defined(__AVX512F__)
  if constexpr (N == 16) y = bit_cast<Halves>(_mm512_cvtepi32_epi16(bit_cast<__m512i>(kept)));
  else
#endif
#if defined(__AVX2__)  // which GCC does not know to hold 16 bits
    if constexpr (N == 8) {
      const auto wide = bit_cast<__m256i>(kept);
      y = bit_cast<Halves>(_mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1)));
    } else
#endif
      y = __builtin_convertvector(kept, Halves);
  std::memcpy(to, &y, sizeof y);
}
// 2 N of bf16 in memory, as vectors of those at even and at odd places: no instruction reorders them. Stored NaN
// must have come from such numbers or from arithmetic: rounding a NaN of other low bits may carry.
template <int N>
struct Bf16Pairs {
  using Floats = typename VectorOf<N>::Floats;
  using Bits = typename VectorOf<N>::Bits;
  Floats even, odd;

  DOVETAIL_CPU_INLINE explicit Bf16Pairs(const bf16* from) {
    Bits both;
    std::memcpy(&both, from, sizeof both);
    even = bit_cast<Floats>(both << 16), odd = bit_cast<Floats>(both & 0xFFFF0000);
  }
  DOVETAIL_CPU_INLINE static Bits rounded(Floats x) {
    const Bits bits = bit_cast<Bits>(x);
    return bits + (0x7FFF + (bits >> 16 & 1));
  }
  DOVETAIL_CPU_INLINE static void store(Floats even, Floats odd, bf16* to) {
    const Bits both = rounded(even) >> 16 | (rounded(odd) & 0xFFFF0000);
    std::memcpy(to, &both, sizeof both);
  }
};
template <int N>
DOVETAIL_CPU_INLINE void store_floats(typename VectorOf<N>::Floats x, f16* to) {
#if defined(__AVX512F__)
  if constexpr (N == 16)
    return _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
#endif
#if defined(__F16C__)
  if constexpr (N == 8)
    return _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
#endif
#if defined(__aarch64__)
  if constexpr (N == 4) return vst1_u16(&to->bits, vreinterpret_u16_f16(vcvt_f16_f32(x)));
#endif
  for (int i = 0; i < N; ++i) to[i] = narrow<f16>(x[i]);
}

// Arrays.
DOVETAIL_CPU_INLINE void widen(const bf16* in, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = widen(in[i]);
}
#if defined(__AVX2__) && !defined(__AVX512F__)
// Floats rounded to bf16, in 32 bits: two vectors share the instructions that pack them.
DOVETAIL_CPU_INLINE __m256i rounded_to_bf16(const float* from) {
  const __m256 x = _mm256_loadu_ps(from);
  const __m256i bits = _mm256_castps_si256(x), odd = _mm256_srli_epi32(_mm256_slli_epi32(bits, 15), 31);
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
  const __m256i nan = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 kept =
      _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(nan), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_castps_si256(kept), 16);
}
#endif
DOVETAIL_CPU_INLINE void narrow(const float* in, bf16* out, int64_t n) {
  int64_t i = 0;
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  for (; i + 8 <= n; i += 8) {
    const bfloat16x8_t low = vcvtq_low_bf16_f32(vld1q_f32(in + i));
    vst1q_u16(&out[i].bits, vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(low, vld1q_f32(in + i + 4))));
  }
#endif
#if defined(__AVX2__) && !defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m256i both = _mm256_packus_epi32(rounded_to_bf16(in + i), rounded_to_bf16(in + i + 8));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_permute4x64_epi64(both, 0b11011000));
  }
#endif
  for (; i + floats <= n; i += floats) store_floats<floats>(load_floats<floats>(in + i), out + i);
  for (; i < n; ++i) out[i] = narrow<bf16>(in[i]);
}
DOVETAIL_CPU_INLINE void widen(const f16* in, float* out, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i))));
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
#endif
  for (; i < n; ++i) out[i] = widen(in[i]);
}
DOVETAIL_CPU_INLINE void narrow(const float* in, f16* out, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm512_cvtps_ph(_mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__)
  for (; i + 8 <= n; i += 8) {
    const float16x4_t low = vcvt_f16_f32(vld1q_f32(in + i));
    vst1q_u16(&out[i].bits, vreinterpretq_u16_f16(vcvt_high_f16_f32(low, vld1q_f32(in + i + 4))));
  }
#endif
  for (; i < n; ++i) out[i] = narrow<f16>(in[i]);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
