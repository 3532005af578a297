// The mean of a row and the root of its mean square about that, which norms divide by; in two passes.
#pragma once
#include "simd/rows.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::rows {
template <class T>
struct Moments {
  T mean, root;  // 0, where not centred; the root of the mean square of the differences from it, plus eps
};

template <bool centred, class T>
DOVETAIL_CPU_INLINE Moments<T> moments(const T* x, int64_t n, T eps) {
  T mean = 0;
  if constexpr (centred) mean = sum_of(x, n, T(0), [](V<T> v, int64_t, int64_t) { return v; }) / T(n);
  const V<T> middle = mean;
  const T square = sum_of(x, n, mean, [=](V<T> v, int64_t, int64_t) { return (v - middle) * (v - middle); }) / T(n);
  return {mean, std::sqrt(square + eps)};
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::rows
