// Shared by kernels over rows: float or double vectors, partial ones at a row's end, rows of fp16 and bf16
// widened.
#pragma once
#include <cmath>

#include "scratch.hpp"
#include "simd/combine.hpp"
#include "simd/double_exponential.hpp"
#include "simd/half.hpp"
#include "simd/horizontal.hpp"
#include "simd/math.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::rows {
namespace stdx = std::experimental;
template <class T>
using V = stdx::native_simd<T>;
template <class T>
inline constexpr int64_t width = int64_t(V<T>::size());
template <class T>
inline constexpr bool is_half = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
template <class T>
using Computed = std::conditional_t<is_half<T>, float, T>;  // the type in which T is computed

template <class T>
DOVETAIL_CPU_INLINE V<T> load(const T* x) {
  return V<T>(x, stdx::element_aligned);
}
// load_part: the first n < width elements, padded with `fill`; store_part: its way back.
#if defined(__AVX512F__)
DOVETAIL_CPU_INLINE V<float> load_part(const float* x, int64_t n, float fill) {
  return V<float>(_mm512_mask_loadu_ps(_mm512_set1_ps(fill), __mmask16((1u << n) - 1), x));
}
DOVETAIL_CPU_INLINE V<double> load_part(const double* x, int64_t n, double fill) {
  return V<double>(_mm512_mask_loadu_pd(_mm512_set1_pd(fill), __mmask8((1u << n) - 1), x));
}
DOVETAIL_CPU_INLINE void store_part(V<float> v, float* x, int64_t n) {
  _mm512_mask_storeu_ps(x, __mmask16((1u << n) - 1), static_cast<__m512>(v));
}
DOVETAIL_CPU_INLINE void store_part(V<double> v, double* x, int64_t n) {
  _mm512_mask_storeu_pd(x, __mmask8((1u << n) - 1), static_cast<__m512d>(v));
}
#elif defined(__AVX2__)
// All bits of the first `bytes` bytes.
DOVETAIL_CPU_INLINE __m256i first_bytes(int64_t bytes) {
  static constexpr int64_t window[] = {-1, -1, -1, -1, 0, 0, 0, 0};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(reinterpret_cast<const char*>(window + 4) - bytes));
}
DOVETAIL_CPU_INLINE V<float> load_part(const float* x, int64_t n, float fill) {
  const __m256i mask = first_bytes(4 * n);
  return V<float>(_mm256_blendv_ps(_mm256_set1_ps(fill), _mm256_maskload_ps(x, mask), _mm256_castsi256_ps(mask)));
}
DOVETAIL_CPU_INLINE V<double> load_part(const double* x, int64_t n, double fill) {
  const __m256i mask = first_bytes(8 * n);
  return V<double>(_mm256_blendv_pd(_mm256_set1_pd(fill), _mm256_maskload_pd(x, mask), _mm256_castsi256_pd(mask)));
}
DOVETAIL_CPU_INLINE void store_part(V<float> v, float* x, int64_t n) {
  _mm256_maskstore_ps(x, first_bytes(4 * n), static_cast<__m256>(v));
}
DOVETAIL_CPU_INLINE void store_part(V<double> v, double* x, int64_t n) {
  _mm256_maskstore_pd(x, first_bytes(8 * n), static_cast<__m256d>(v));
}
#else
template <class T>
DOVETAIL_CPU_INLINE V<T> load_part(const T* x, int64_t n, T fill) {
  T lane[width<T>];
  for (T& l : lane) l = fill;
  for (int64_t i = 0; i < n; ++i) lane[i] = x[i];
  return load(lane);
}
template <class T>
DOVETAIL_CPU_INLINE void store_part(V<T> v, T* x, int64_t n) {
  T lane[width<T>];
  v.copy_to(lane, stdx::element_aligned);
  for (int64_t i = 0; i < n; ++i) x[i] = lane[i];
}
#endif

// A vector of x from i on, of which `count` elements are there, and its way back.
template <class T>
DOVETAIL_CPU_INLINE V<T> part(const T* x, int64_t i, int64_t count) {
  return count == width<T> ? load(x + i) : load_part(x + i, count, T(0));
}
template <class T>
DOVETAIL_CPU_INLINE void put(V<T> v, T* x, int64_t i, int64_t count) {
  if (count == width<T>) v.copy_to(x + i, stdx::element_aligned);
  else store_part(v, x + i, count);
}

// x / divisor by Newton's method, whose remainder rounds as a division does and takes a quarter of its time.
template <class T>
struct Divisor {
  V<T> by, inverse;

  // Whether quotients that are not much larger than 1 are as those of a division: their remainders are exact.
  static bool suits(T divisor) {
#if defined(DOVETAIL_CPU_FMA)
    return divisor > T(0x1p-60) && divisor < T(0x1p60);
#else
    return divisor != divisor;
#endif
  }

  DOVETAIL_CPU_INLINE explicit Divisor(T divisor) : by(divisor), inverse(1 / divisor) {}
  DOVETAIL_CPU_INLINE V<T> divide(V<T> x) const {
    const V<T> quotient = x * inverse;
    return quotient - (quotient * by - x) * inverse;  // in this order -0 remains -0
  }
};

DOVETAIL_CPU_INLINE V<float> exp(V<float> x) { return math::exp(x); }
DOVETAIL_CPU_INLINE V<double> exp(V<double> x) { return doubles::exp(x); }

// Applies f to vectors of x[0, n), the last one padded; the results of f are added up in pairs of short
// chains.
template <class T, class F>
DOVETAIL_CPU_INLINE T sum_of(const T* x, int64_t n, T fill, F f) {
  constexpr int64_t W = width<T>;
  reduction::Pairs<reduction::Sum<T>, V<T>> pairs;
  int64_t i = 0;
  for (; i + 16 * W <= n; i += 16 * W) {
    V<T> sum[4] = {};
    for (int64_t k = 0; k < 16; k += 4)
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) sum[c] += f(load(x + i + (k + c) * W), i + (k + c) * W, W);
    pairs.add((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
  V<T> next = 0, other = 0;  // in turns
  for (; i + W <= n; i += W) {
    const V<T> sum = next + f(load(x + i), i, W);
    next = other, other = sum;
  }
  if (i < n) next += f(load_part(x + i, n - i, fill), i, n - i);
  return horizontal_sum(pairs.total() + (next + other));
}

template <class T>
struct Two {
  T a, b;
};

// As sum_of, of two terms for each element.
template <class T, class F>
DOVETAIL_CPU_INLINE Two<T> sums_of(const T* x, int64_t n, F f) {
  constexpr int64_t W = width<T>;
  reduction::Pairs<reduction::Sum<T>, V<T>> first, second;
  int64_t i = 0;
  for (; i + 16 * W <= n; i += 16 * W) {
    V<T> a[4] = {}, b[4] = {};
    for (int64_t k = 0; k < 16; k += 4)
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) {
        const Two<V<T>> terms = f(load(x + i + (k + c) * W), i + (k + c) * W, W);
        a[c] += terms.a, b[c] += terms.b;
      }
    first.add((a[0] + a[1]) + (a[2] + a[3])), second.add((b[0] + b[1]) + (b[2] + b[3]));
  }
  V<T> a = 0, b = 0;
  for (; i < n; i += W) {
    const int64_t count = n - i < W ? n - i : W;
    const Two<V<T>> terms = f(part(x, i, count), i, count);
    a += terms.a, b += terms.b;
  }
  return {horizontal_sum(first.total() + a), horizontal_sum(second.total() + b)};
}

// An upper bound of all elements; NaN may get lost.
template <class T>
DOVETAIL_CPU_INLINE T greatest(const T* x, int64_t n) {
  constexpr int64_t W = width<T>;
  const T least = -T(__builtin_inf());
  V<T> best[4] = {least, least, least, least};
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W)
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) best[k] = stdx::max(load(x + i + k * W), best[k]);
  for (; i + W <= n; i += W) best[0] = stdx::max(load(x + i), best[0]);
  if (i < n) best[0] = stdx::max(load_part(x + i, n - i, least), best[0]);
  return horizontal_max(stdx::max(stdx::max(best[0], best[1]), stdx::max(best[2], best[3])));
}

// A row of x as T: in place, or widened into `buffer`; then the lines of the next row, if it follows and is not
// long, arrive while this one is computed.
template <class In>
DOVETAIL_CPU_INLINE const Computed<In>* widened(const In* x, int64_t stride, int64_t n, Computed<In>* buffer) {
  if constexpr (is_half<In>) {
    if (stride == 1) {
      widen(x, buffer, n);
      constexpr int64_t line = 64 / sizeof(In), most = 4096;
      for (int64_t i = 0; i < n && n <= most; i += line) __builtin_prefetch(x + n + i);
    } else {
      for (int64_t i = 0; i < n; ++i) buffer[i] = widen(x[i * stride]);
    }
    return buffer;
  } else {
    if (stride == 1) return x;
    for (int64_t i = 0; i < n; ++i) buffer[i] = x[i * stride];
    return buffer;
  }
}
template <class Out>
DOVETAIL_CPU_INLINE void put_row(const Computed<Out>* row, Out* out, int64_t stride, int64_t n) {
  if constexpr (is_half<Out>) {
    if (stride == 1) return narrow(row, out, n);
    for (int64_t i = 0; i < n; ++i) out[i * stride] = narrow<Out>(row[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i * stride] = row[i];
  }
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::rows
