// Sorting the keys of some vectors in registers: the columns first, which takes no exchange within a vector, then
// the columns are merged, and at last their keys are put side by side. K. E. Batcher, "Sorting networks and their
// applications" (1968), has both networks: the odd-even mergesort and the bitonic merge.
#pragma once
#include <array>
#include <experimental/simd>

#include "simd/each.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
template <class Key>
class RegisterSort {
 public:
  static constexpr int N = int(std::experimental::native_simd<Key>::size());
  typedef Key V __attribute__((vector_size(N * sizeof(Key))));
  static constexpr Key largest = Key(~(uint64_t{1} << (8 * sizeof(Key) - 1)));
  // Some registers are left for temporary values.
  static constexpr int most_rows = sizeof(V) == 64 ? 16 : 8;
  static constexpr int64_t most = most_rows * N;

  // 0 < n <= most; n is a multiple of N.
  static void sort(Key* keys, int64_t n) {
    if (n <= 2 * N) return sort_rows<2>(keys, n);
    if (n <= 4 * N) return sort_rows<4>(keys, n);
    if constexpr (most_rows == 16)
      if (n <= 8 * N) return sort_rows<8>(keys, n);
    sort_rows<most_rows>(keys, n);
  }

  // Keys that stay behind all others.
  static void pad(Key* keys, int64_t count) {
    for (int64_t i = 0; i < count; ++i) keys[i] = largest;
  }

  DOVETAIL_CPU_INLINE static V load(const Key* from) {
    V v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  DOVETAIL_CPU_INLINE static void store(const V& v, Key* to) { std::memcpy(to, &v, sizeof v); }
  DOVETAIL_CPU_INLINE static void order(V& a, V& b) {
    const V small = a < b ? a : b;
    b = a < b ? b : a, a = small;
  }
  DOVETAIL_CPU_INLINE static V reversed(const V& v) { return across<N - 1>(v, Lanes()); }
  // Sorts N keys that are bitonic.
  DOVETAIL_CPU_INLINE static void clean(V& v) { clean_lanes<1, N / 2>(&v); }

 private:
  using Lanes = std::make_integer_sequence<int, N>;
  template <int R>
  using Rows = std::make_integer_sequence<int, R>;

  // Lane i of the result is lane i ^ distance.
  template <int distance, int... i>
  DOVETAIL_CPU_INLINE static V across(const V& v, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(v, v, (i ^ distance)...);
  }
  // The smaller of v and other, and the larger where `bit` of the lane's number is set.
  template <int bit, int... i>
  DOVETAIL_CPU_INLINE static V ordered(const V& v, const V& other, std::integer_sequence<int, i...>) {
    const V small = v < other ? v : other, large = v < other ? other : v;
    return __builtin_shufflevector(small, large, ((i & bit) ? i + N : i)...);
  }
  template <int half, int... i>
  DOVETAIL_CPU_INLINE static V interleaved(const V& a, const V& b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (half * N / 2 + i / 2 + i % 2 * N)...);
  }

  struct Pair {
    int a, b;
  };
  template <int R, class F>
  static constexpr void for_each_pair(F f) {
    for (int merged = 1; merged < R; merged *= 2)
      for (int gap = merged; gap; gap /= 2)
        for (int from = gap % merged; from + gap < R; from += 2 * gap)
          for (int i = from; i < from + gap && i + gap < R; ++i)
            if (i / (2 * merged) == (i + gap) / (2 * merged)) f(Pair{i, i + gap});
  }
  template <int R>
  static constexpr int pairs = [] {
    int count = 0;
    for_each_pair<R>([&](Pair) { ++count; });
    return count;
  }();
  template <int R>
  static constexpr auto network = [] {
    std::array<Pair, size_t(pairs<R>)> made{};
    size_t i = 0;
    for_each_pair<R>([&](Pair p) { made[i++] = p; });
    return made;
  }();

  // Columns of R rows that are bitonic, in each lane.
  template <int R, int distance>
  DOVETAIL_CPU_INLINE static void clean_rows(V* v) {
    if constexpr (distance > 0) {
      for_each_constant(
          [&]<int r>() {
            if constexpr (!(r & distance)) order(v[r], v[r + distance]);
          },
          Rows<R>());
      clean_rows<R, distance / 2>(v);
    }
  }
  template <int R, int distance>
  DOVETAIL_CPU_INLINE static void clean_lanes(V* v) {
    if constexpr (distance > 0) {
      for_each_constant([&]<int r>() { v[r] = ordered<distance>(v[r], across<distance>(v[r], Lanes()), Lanes()); },
                        Rows<R>());
      clean_lanes<R, distance / 2>(v);
    }
  }
  // Groups of columns, each sorted column after column, become groups of twice as many.
  template <int R, int columns>
  DOVETAIL_CPU_INLINE static void merge_columns(V* v) {
    if constexpr (columns < N) {
      constexpr int reverse = 2 * columns - 1;
      for_each_constant(
          [&]<int r>() {
            const V a = v[r], b = v[R - 1 - r];
            v[r] = ordered<columns>(a, across<reverse>(b, Lanes()), Lanes());
            v[R - 1 - r] = ordered<columns>(b, across<reverse>(a, Lanes()), Lanes());
          },
          Rows<R / 2>());
      clean_lanes<R, columns / 2>(v);
      clean_rows<R, R / 2>(v);
      merge_columns<R, 2 * columns>(v);
    }
  }
  // Column after column becomes row after row.
  template <int R, int steps>
  DOVETAIL_CPU_INLINE static void interleave(V* v) {
    if constexpr (steps > 1) {
      V from[R];
      for_each_constant([&]<int r>() { from[r] = v[r]; }, Rows<R>());
      for_each_constant([&]<int r>() { v[r] = interleaved<r % 2>(from[r / 2], from[r / 2 + R / 2], Lanes()); },
                        Rows<R>());
      interleave<R, steps / 2>(v);
    }
  }
  template <int R>
  static void sort_rows(Key* keys, int64_t n) {
    V v[R];
    for_each_constant([&]<int r>() { v[r] = r * N < n ? load(keys + r * N) : V{} + largest; }, Rows<R>());
    for_each_constant([&]<int i>() { order(v[network<R>[i].a], v[network<R>[i].b]); }, Rows<pairs<R>>());
    merge_columns<R, 1>(v);
    interleave<R, R>(v);
    for_each_constant(
        [&]<int r>() {
          if (r * N < n) store(v[r], keys + r * N);
        },
        Rows<R>());
  }
};
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
