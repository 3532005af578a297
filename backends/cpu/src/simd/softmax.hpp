// softmax and log_softmax of one row.
#pragma once
#include "simd/rows.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::rows {
// The largest terms are exactly 1. They are counted, and the rest is summed separately, which preserves its
// digits.

// `divisor` is finite and at least 1.
template <class T>
DOVETAIL_CPU_INLINE void divide_row(T* y, int64_t n, T divisor) {
  const Divisor<T> by(divisor);
  for (int64_t i = 0; i < n; i += width<T>) {
    const int64_t count = n - i < width<T> ? n - i : width<T>;
    put(by.divide(part(y, i, count)), y, i, count);
  }
}

// y may be x.
template <class T, bool logarithm>
[[gnu::noinline]] void softmax_row(const T* x, T* y, int64_t n) {
  T top = greatest(x, n);
  if (top - top != 0) top = 0;  // infinite: nothing is subtracted
  V<T> ones = 0;
  const T* const next = x + n;  // the next row, in most cases: its lines arrive while this one is computed
  const T rest = sum_of(x, n, -T(__builtin_inf()), [&, top](V<T> v, int64_t i, int64_t count) {
    __builtin_prefetch(next + i);
    V<T> e = rows::exp(v - top);
    if constexpr (!logarithm) put(e, y, i, count);
    stdx::where(v == top, ones) += 1;
    stdx::where(v == top, e) = 0;
    return e;
  });
  const T sum = horizontal_sum(ones) + rest;
  if constexpr (logarithm) {
    const T log_sum = std::log(sum);
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - top) - log_sum;
  } else {
    if (sum - sum == 0) return divide_row(y, n, sum);
    for (int64_t i = 0; i < n; ++i) y[i] /= sum;
  }
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::rows
