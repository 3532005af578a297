// Terms of reductions, combined by vectors.
//
// Sums are made of short runs that are added up in pairs, so their error does not grow with the number of terms.
#pragma once
#include <experimental/simd>

#include "kernel.hpp"
#include "loops.hpp"
#include "simd/each.hpp"
#include "simd/half.hpp"
#include "simd/horizontal.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::reduction {
namespace stdx = std::experimental;
template <class T>
using V = stdx::native_simd<T>;

template <class T>
struct Sum {
  using Type = T;
  static constexpr T identity = 0;
  DOVETAIL_CPU_INLINE static V<T> combine(V<T> a, V<T> b) { return a + b; }
  DOVETAIL_CPU_INLINE static T combine(T a, T b) { return T(a + b); }
};
template <class T>
struct Product {
  using Type = T;
  static constexpr T identity = 1;
  DOVETAIL_CPU_INLINE static V<T> combine(V<T> a, V<T> b) { return a * b; }
  DOVETAIL_CPU_INLINE static T combine(T a, T b) {
    if constexpr (sizeof(T) < 4) return T(uint32_t(a) * b);
    else return a * b;
  }
};
template <class T>
inline constexpr T lowest = T(-1) < T(0) ? T(uint64_t{1} << (8 * sizeof(T) - 1)) : T(0);
template <>
inline constexpr float lowest<float> = -__builtin_inff();
template <>
inline constexpr double lowest<double> = -__builtin_inf();
template <class T>
inline constexpr T highest = std::is_floating_point_v<T> ? -lowest<T> : T(~lowest<T>);
template <>
inline constexpr float highest<float> = __builtin_inff();
template <>
inline constexpr double highest<double> = __builtin_inf();

// b > a ? b : a, and b < a ? b : a. GCC takes two instructions of AVX-512 for them.
template <class T>
DOVETAIL_CPU_INLINE V<T> greater(V<T> a, V<T> b) {
  if constexpr (std::is_integral_v<T>) return stdx::max(a, b);
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return V<T>(_mm512_max_ps(static_cast<__m512>(b), static_cast<__m512>(a)));
  if constexpr (std::is_same_v<T, double>)
    return V<T>(_mm512_max_pd(static_cast<__m512d>(b), static_cast<__m512d>(a)));
#endif
  stdx::where(b > a, a) = b;
  return a;
}
template <class T>
DOVETAIL_CPU_INLINE V<T> less(V<T> a, V<T> b) {
  if constexpr (std::is_integral_v<T>) return stdx::min(a, b);
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return V<T>(_mm512_min_ps(static_cast<__m512>(b), static_cast<__m512>(a)));
  if constexpr (std::is_same_v<T, double>)
    return V<T>(_mm512_min_pd(static_cast<__m512d>(b), static_cast<__m512d>(a)));
#endif
  stdx::where(b < a, a) = b;
  return a;
}
// b where it is NaN.
template <class T>
DOVETAIL_CPU_INLINE V<T> or_nan(V<T> a, V<T> b) {
  if constexpr (std::is_floating_point_v<T>) stdx::where(b != b, a) = b;
  return a;
}

// NaN wins: it replaces the result, and nothing compares greater than it afterwards.
template <class T>
struct Max {
  using Type = T;
  static constexpr T identity = lowest<T>;
  DOVETAIL_CPU_INLINE static V<T> combine(V<T> a, V<T> b) { return or_nan<T>(greater<T>(a, b), b); }
  DOVETAIL_CPU_INLINE static V<T> combine_numbers(V<T> a, V<T> b) { return greater<T>(a, b); }
  DOVETAIL_CPU_INLINE static T combine_numbers(T a, T b) { return b > a ? b : a; }
  DOVETAIL_CPU_INLINE static T combine(T a, T b) { return (b > a) | (b != b) ? b : a; }
};
template <class T>
struct Min {
  using Type = T;
  static constexpr T identity = highest<T>;
  DOVETAIL_CPU_INLINE static V<T> combine(V<T> a, V<T> b) { return or_nan<T>(less<T>(a, b), b); }
  DOVETAIL_CPU_INLINE static V<T> combine_numbers(V<T> a, V<T> b) { return less<T>(a, b); }
  DOVETAIL_CPU_INLINE static T combine_numbers(T a, T b) { return b < a ? b : a; }
  DOVETAIL_CPU_INLINE static T combine(T a, T b) { return (b < a) | (b != b) ? b : a; }
};

// Op without care for NaN.
template <class Op>
struct OfNumbers : Op {
  DOVETAIL_CPU_INLINE static auto combine(auto a, auto b) { return Op::combine_numbers(a, b); }
};

// Whether Op has a faster form without that care.
template <class Op, class T = typename Op::Type>
constexpr bool has_number_form = std::is_floating_point_v<T> && requires(V<T> x) { Op::combine_numbers(x, x); };

// Conversions from memory to the accumulated type, and back.
template <class In, class T>
struct Load {
  DOVETAIL_CPU_INLINE static T one(In x) {
    if constexpr (std::is_same_v<In, f16> || std::is_same_v<In, bf16>) return widen(x);
    else return T(x);
  }
};
constexpr int64_t run_length = Reduction::run_length, column_block = 1024,
                  row_group = Reduction::Columns::rows_of_run;

// Combines numbers or vectors in pairs of equal weight: a binary counter.
template <class Op, class X>
class Pairs {
 public:
  DOVETAIL_CPU_INLINE void add(X x) {
    for (uint64_t i = count_++; i & 1; i >>= 1) x = Op::combine(stack_[--top_], x);
    stack_[top_++] = x;
  }
  DOVETAIL_CPU_INLINE X total() {
    X x = top_ ? stack_[--top_] : X(Op::identity);
    while (top_) x = Op::combine(stack_[--top_], x);
    return x;
  }

 private:
  X stack_[40];
  int top_ = 0;
  uint64_t count_ = 0;
};

// lane[0] = all 2 * w lanes, the second half into the first, and again. Steps of a fixed length become vectors,
// which pays for the many lanes of short elements.
template <class Op, int64_t w, class T>
DOVETAIL_CPU_INLINE void fold_halves(T* lane) {
  if constexpr (sizeof(T) == 8) {
    for (int64_t n = w; n; n /= 2)
      for (int64_t k = 0; k < n; ++k) lane[k] = Op::combine(lane[k], lane[k + n]);
  } else if constexpr (w > 0) {
    for (int64_t k = 0; k < w; ++k) lane[k] = Op::combine(lane[k], lane[k + w]);
    fold_halves<Op, w / 2>(lane);
  }
}

// n < V<T>::size() terms, in a vector.
template <class Op, class T = typename Op::Type>
DOVETAIL_CPU_INLINE V<T> part_of_vector(const T* x, int64_t n) {
  constexpr int64_t W = V<T>::size();
  T lane[W];
  for (int64_t q = 0; q < W; ++q) lane[q] = q < n ? x[q] : Op::identity;
  return V<T>(lane, stdx::element_aligned);
}
// The same, compiled once for short elements, which have many lanes.
template <class Op, class T = typename Op::Type>
[[gnu::noinline]] V<T> part_of_long_vector(const T* x, int64_t n) {
  return part_of_vector<Op>(x, n);
}
// The last `rest` of the n terms at x, in a vector.
template <class Op, class T = typename Op::Type>
DOVETAIL_CPU_INLINE V<T> rest_of_vector(const T* x, int64_t n, int64_t rest) {
  constexpr int64_t W = V<T>::size();
  if (n < W) {
    if constexpr (sizeof(T) < 4) return part_of_long_vector<Op>(x, n);
    else return part_of_vector<Op>(x, n);
  }
  V<T> all(x + n - W, stdx::element_aligned);
  stdx::where(V<T>([](auto lane) { return T(lane); }) < T(W - rest), all) = V<T>(Op::identity);
  return all;
}

// Terms [begin, begin + n) at x by vectors, n <= group_length: eight chains of at most eight, the remainder in a
// last vector. `watch_nan`: sets `nan` where there was one.
template <class T>
constexpr int64_t group_length = 64 * V<T>::size();
template <class Op, bool watch_nan, class T = typename Op::Type>
DOVETAIL_CPU_INLINE V<T> combine_group(const T* x, int64_t begin, int64_t n, typename V<T>::mask_type& nan) {
  constexpr int64_t W = V<T>::size(), chains = 8;
  constexpr auto each = std::make_integer_sequence<int, chains>();
  V<T> acc[chains], last;
  const T* at = x + begin;
  int64_t left = n;
  // Zen 3 itself prefetches within a page only: hints for the next group's first lines make it begin. Hints for all
  // lines take a tenth to a fifth of the bandwidth of Zen 4's third level and memory.
  if constexpr (sizeof(V<T>) < 64) {
    __builtin_prefetch(at + group_length<T>);
    __builtin_prefetch(at + group_length<T> + 64 / sizeof(T));
  }
  for_each_constant([&]<int c>() __attribute__((always_inline)) { acc[c] = Op::identity; }, each);
  for (; left >= chains * W; left -= chains * W, at += chains * W)
    for_each_constant(
        [&]<int c>() __attribute__((always_inline)) {
          const V<T> u(at + c * W, stdx::element_aligned);
          acc[c] = Op::combine(acc[c], u);
          if constexpr (watch_nan && c % 2) nan = nan || stdx::isunordered(last, u);
          else last = u;
        },
        each);
  for_each_constant(
      [&]<int c>() __attribute__((always_inline)) {
        if (c + 1 == chains || left < (c + 1) * W) return;
        const V<T> u(at + c * W, stdx::element_aligned);
        acc[c] = Op::combine(acc[c], u);
        if constexpr (watch_nan) nan = nan || u != u;
      },
      each);
  if (const int64_t rest = left % W) {  // the last vector of the terms, without those that were in the one before
    const V<T> u = rest_of_vector<Op>(x, begin + n, rest);
    acc[chains - 1] = Op::combine(acc[chains - 1], u);
    if constexpr (watch_nan) nan = nan || u != u;
  }
  for_each_constant([&]<int c>()
                        __attribute__((always_inline)) { acc[c] = Op::combine(acc[c], acc[c + chains / 2]); },
                    std::make_integer_sequence<int, chains / 2>());
  return Op::combine(Op::combine(acc[0], acc[2]), Op::combine(acc[1], acc[3]));
}
// Contiguous terms by vectors, the groups in pairs. `watch_nan`: returns false if there was one.
template <class Op, bool watch_nan = false, class T = typename Op::Type>
DOVETAIL_CPU_INLINE bool combine_vectors(const T* x, int64_t n, V<T>& total) {
  constexpr int64_t group = group_length<T>;
  typename V<T>::mask_type nan(false);
  Pairs<Op, V<T>> pairs;
  for (int64_t i = 0; i < n; i += group) {
    total = combine_group<Op, watch_nan>(x, i, least(n - i, group), nan);
    if (n > group) pairs.add(total);
  }
  if (n > group) total = pairs.total();
  return !stdx::any_of(nan);
}

template <class Op, class T = typename Op::Type>
DOVETAIL_CPU_INLINE T combine_lanes(V<T> x) {
  constexpr int64_t W = V<T>::size();
  T lane[W];
  x.copy_to(lane, stdx::element_aligned);
  fold_halves<Op, W / 2>(lane);
  return lane[0];
}

template <class Op, class T = typename Op::Type>
[[gnu::noinline]] T combine_run(const T* x, int64_t n) {
  if (n <= 4) {
    if (n == 4) return Op::combine(Op::combine(x[0], x[1]), Op::combine(x[2], x[3]));
    T result = Op::identity;
    for (int64_t i = 0; i < n; ++i) result = Op::combine(result, x[i]);
    return result;
  }
  V<T> total;
  if constexpr (has_number_form<Op>)
    if (combine_vectors<OfNumbers<Op>, true>(x, n, total)) return combine_lanes<OfNumbers<Op>>(total);
  combine_vectors<Op>(x, n, total);
  return combine_lanes<Op>(total);
}

// Rows that leave a vector each, which are folded together. Short elements have so many lanes that this costs more
// than it saves.
template <class T>
constexpr int rows_at_once = sizeof(T) < 4 ? 1 : int(V<T>::size());

// Op on a compiler's own vectors.
template <class Op>
struct OnRegisters {
  template <class Vector>
  DOVETAIL_CPU_INLINE Vector operator()(const Vector& a, const Vector& b) const {
    V<typename Op::Type> x, y;
    std::memcpy(static_cast<void*>(&x), &a, sizeof a);
    std::memcpy(static_cast<void*>(&y), &b, sizeof b);
    x = Op::combine(x, y);
    Vector result;
    std::memcpy(&result, &x, sizeof x);
    return result;
  }
};

// Whether all of the rows were combined: none, if `watch_nan` and there was one.
template <class Op, bool watch_nan, class T = typename Op::Type>
DOVETAIL_CPU_INLINE bool combine_vectors_of_rows(const T* x, int64_t distance, int64_t n, T* out) {
  typedef T Register __attribute__((vector_size(sizeof(V<T>))));
  constexpr int rows = rows_at_once<T>;
  Register totals[rows];
  typename V<T>::mask_type nan(false);
  for (int i = 0; i < rows; ++i) {
    const V<T> total = combine_group<Op, watch_nan>(x + i * distance, 0, n, nan);
    std::memcpy(&totals[i], &total, sizeof total);
  }
  if (stdx::any_of(nan)) return false;
  combine_horizontally<int(V<T>::size()), rows, OnRegisters<Op>>(totals, out);
  return true;
}
// Whether rows of n terms are for combine_rows.
template <class T>
constexpr bool is_short_row(int64_t n) {
  return rows_at_once<T> > 1 && n > 4 && n <= group_length<T>;
}
// rows_at_once<T> such rows: out[i] has the bits of combine_run(x + i * distance, n).
template <class Op, class T = typename Op::Type>
[[gnu::noinline]] void combine_rows(const T* x, int64_t distance, int64_t n, T* out) {
  if constexpr (!has_number_form<Op>) {
    combine_vectors_of_rows<Op, false>(x, distance, n, out);
  } else if (!combine_vectors_of_rows<OfNumbers<Op>, true>(x, distance, n, out)) {
    for (int i = 0; i < rows_at_once<T>; ++i) out[i] = combine_run<Op>(x + i * distance, n);
  }
}

// Compiled in max.cpp alone, not again for argmax and any.
#define DOVETAIL_CPU_EXTREMUM(WHAT, T)                \
  WHAT T combine_run<Max<T>, T>(const T*, int64_t n); \
  WHAT T combine_run<Min<T>, T>(const T*, int64_t n);
#define DOVETAIL_CPU_EXTREMA(WHAT)      \
  DOVETAIL_CPU_EXTREMUM(WHAT, float)    \
  DOVETAIL_CPU_EXTREMUM(WHAT, double)   \
  DOVETAIL_CPU_EXTREMUM(WHAT, int8_t)   \
  DOVETAIL_CPU_EXTREMUM(WHAT, int16_t)  \
  DOVETAIL_CPU_EXTREMUM(WHAT, int32_t)  \
  DOVETAIL_CPU_EXTREMUM(WHAT, int64_t)  \
  DOVETAIL_CPU_EXTREMUM(WHAT, uint8_t)  \
  DOVETAIL_CPU_EXTREMUM(WHAT, uint16_t) \
  DOVETAIL_CPU_EXTREMUM(WHAT, uint32_t) \
  DOVETAIL_CPU_EXTREMUM(WHAT, uint64_t)
DOVETAIL_CPU_EXTREMA(extern template)
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::reduction
