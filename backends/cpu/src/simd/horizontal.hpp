// Reductions of the elements of one vector.
#pragma once
#include <experimental/simd>

#include "kernel.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace stdx = std::experimental;

#if defined(__aarch64__)
// The standard library's reductions call functions on half vectors that the compiler does not inline
// (kernel.hpp).
template <class V, class F>
DOVETAIL_CPU_INLINE typename V::value_type fold(const V& x, F f) {
  typename V::value_type lanes[V::size()];
  x.copy_to(lanes, stdx::element_aligned);
  for (size_t step = V::size() / 2; step; step /= 2)
    for (size_t i = 0; i < step; ++i) lanes[i] = f(lanes[i], lanes[i + step]);
  return lanes[0];
}
template <class V>
DOVETAIL_CPU_INLINE auto horizontal_sum(const V& x) {
  return fold(x, [](auto a, auto b) { return a + b; });
}
template <class V>
DOVETAIL_CPU_INLINE auto horizontal_max(const V& x) {
  return fold(x, [](auto a, auto b) { return a < b ? b : a; });
}
#else
template <class V>
DOVETAIL_CPU_INLINE auto horizontal_sum(const V& x) {
  return stdx::reduce(x);
}
template <class V>
DOVETAIL_CPU_INLINE auto horizontal_max(const V& x) {
  return stdx::hmax(x);
}
#endif
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
