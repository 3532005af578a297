// Reductions of the elements of one vector.
#pragma once
#include <cstring>
#include <experimental/simd>
#include <utility>

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

// ---- reductions of several vectors at once: in place of each one's halves, those of a pair are combined by one
// instruction. Vectors are a compiler's own, of `width` numbers T.

// Where lane `lane` comes from when groups of `group` lanes become half as long: the low or the high halves of x's
// groups, then those of y (lanes from `width` on). Halves shorter than 128 bits stay within these, which takes one
// instruction.
template <class T>
constexpr int half_of_group(int lane, int width, int group, bool high) {
  const int block = 16 / int(sizeof(T)), unit = group > block ? width : block;
  const int at = lane % unit % (unit / 2), half = group / 2;
  return lane / unit * unit + at / half * group + at % half + (high ? half : 0) +
         (lane % unit < unit / 2 ? 0 : width);
}
template <class T, int width, int group, class Combine, class Vector, size_t... lane>
DOVETAIL_CPU_INLINE Vector combine_halves(const Vector& x, const Vector& y, std::index_sequence<lane...>) {
  return Combine()(__builtin_shufflevector(x, y, half_of_group<T>(int(lane), width, group, false)...),
                   __builtin_shufflevector(x, y, half_of_group<T>(int(lane), width, group, true)...));
}

// The vector whose result is in `lane` after the steps from `group` on.
template <class T>
constexpr int combined_in(int lane, int width, int count) {
  int groups[16] = {}, steps = 0, vector = 0;
  for (int group = width; group > 1; group /= 2) groups[steps++] = group;
  while (steps--) {
    const int from = half_of_group<T>(lane, width, groups[steps], false);
    if (count >> steps > 1) vector = 2 * vector + from / width;
    lane = from % width;
  }
  return vector;
}

template <class T, int width, int group, int count, class Combine, class Vector>
DOVETAIL_CPU_INLINE void halve_groups(Vector* x) {
  if constexpr (group > 1) {
    constexpr int pairs = count > 1 ? count / 2 : 1;
#pragma GCC unroll 16
    for (int i = 0; i < pairs; ++i)
      x[i] = combine_halves<T, width, group, Combine>(x[count > 1 ? 2 * i : 0], x[count > 1 ? 2 * i + 1 : 0],
                                                      std::make_index_sequence<width>());
    halve_groups<T, width, group / 2, pairs, Combine>(x);
  }
}

struct Addition {
  DOVETAIL_CPU_INLINE auto operator()(auto x, auto y) const { return x + y; }
};
// out[i]: the sum of x[i], by halves as horizontal_sum adds, or what else Combine makes of two vectors. `count` is
// a power of two, at most `width`; x is used up.
template <int width, int count, class Combine = Addition, class T, class Vector>
DOVETAIL_CPU_INLINE void combine_horizontally(Vector* x, T* out) {
  halve_groups<T, width, width, count, Combine>(x);
  T results[width];
  std::memcpy(results, x, sizeof results);
#pragma GCC unroll 16
  for (int lane = 0; lane < width; ++lane) out[combined_in<T>(lane, width, count)] = results[lane];
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
