// Sorting whole numbers by vectors: bitonic networks sort one in a register and merge runs, four vectors at a time.
// K. E. Batcher, "Sorting networks and their applications" (1968). Where an instruction stores the chosen lanes of
// a vector, long arrays are cut into short ones by pivots before; C. A. R. Hoare, "Quicksort" (1962).
#pragma once
#include <algorithm>
#include <experimental/simd>
#include <utility>

#include "kernel.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
template <class Key>
class VectorSort {
  static constexpr int N = int(std::experimental::native_simd<Key>::size());
  typedef Key V __attribute__((vector_size(N * sizeof(Key))));
  using Lanes = std::make_integer_sequence<int, N>;

 public:
  static constexpr int64_t step = 4 * N;  // n is a multiple of it

  // Returns `keys` or `buffer`, of n elements each: where the sorted keys are.
  static Key* sort(Key* keys, Key* buffer, int64_t n) {
#if defined(__AVX512F__)
    if (n > 4 * shortest) return cut<false>(keys, buffer, n, 2 * (63 - __builtin_clzll(uint64_t(n)))), keys;
#endif
    return sort_by_merges(keys, buffer, n);
  }

 private:
  static Key* sort_by_merges(Key* keys, Key* buffer, int64_t n) {
    for (int64_t i = 0; i < n; i += 2 * N) {
      V low[1] = {sorted(load(keys + i))}, high[1] = {sorted(load(keys + i + N))};
      merge(low, high);
      store(low[0], keys + i), store(high[0], keys + i + N);
    }
    for (int64_t i = 0; i < n; i += step) merge_runs<2>(keys + i, keys + i + 2 * N, keys + i + step, buffer + i);
    std::swap(keys, buffer);
    for (int64_t run = step; run < n; run *= 2) {
      for (int64_t i = 0; i < n; i += 2 * run) {
        const int64_t middle = least(i + run, n), end = least(i + 2 * run, n);
        merge_runs<4>(keys + i, keys + middle, keys + end, buffer + i);
      }
      std::swap(keys, buffer);
    }
    return keys;
  }

#if defined(__AVX512F__)
  static constexpr int64_t shortest = 512;  // arrays that merges sort

  // The chosen lanes of v, side by side; the others are undefined.
  DOVETAIL_CPU_INLINE static V chosen(const V& v, unsigned lanes) {
    if constexpr (sizeof(Key) == 4) return V(_mm512_maskz_compress_epi32(__mmask16(lanes), __m512i(v)));
    else return V(_mm512_maskz_compress_epi64(__mmask8(lanes), __m512i(v)));
  }
  DOVETAIL_CPU_INLINE static unsigned below(const V& v, Key limit) {
    if constexpr (sizeof(Key) == 4) return _mm512_cmplt_epi32_mask(__m512i(v), _mm512_set1_epi32(limit));
    else return _mm512_cmplt_epi64_mask(__m512i(v), _mm512_set1_epi64(limit));
  }
  // Moves the keys of a that are smaller than the limit, or the others, to b; the rest closes up. Returns its
  // number.
  template <bool small>
  static int64_t move(Key* a, Key* b, int64_t n, Key limit) {
    int64_t kept = 0, i = 0;
    for (; i + N <= n; i += N) {
      const V v = load(a + i);
      const unsigned lanes = below(v, limit), moved = small ? lanes : ~lanes & ((1u << N) - 1);
      store(chosen(v, moved), b + (i - kept));
      store(chosen(v, ~moved), a + kept);
      kept += N - __builtin_popcount(moved);
    }
    for (; i < n; ++i) {
      const Key key = a[i];
      if ((key < limit) == small) b[i - kept] = key;
      else a[kept++] = key;
    }
    return kept;
  }
  // Sorts a; the result is in a or in b, of the same size.
  template <bool in_b>
  static void cut(Key* a, Key* b, int64_t n, int depth) {
    if (n <= shortest) return cut_end<in_b>(a, b, n);
    Key sample[N];
    for (int64_t i = 0; i < N; ++i) sample[i] = a[n * (2 * i + 1) / (2 * N)];
    store(sorted(load(sample)), sample);
    const bool equal = sample[0] == sample[N - 1] && std::all_of(a, a + n, [=](Key k) { return k == *sample; });
    if (equal || !depth) {
      // A comparison of our own: an instance for plain numbers would be shared with code for other processors.
      if (!equal) std::sort(a, a + n, [](Key x, Key y) { return x < y; });
      if (in_b) std::memcpy(b, a, size_t(n) * sizeof(Key));
      return;
    }
    // At least one key is smaller.
    Key limit = sample[N / 2];
    if (limit == sample[0] && limit < Key(~(uint64_t{1} << (8 * sizeof(Key) - 1)))) ++limit;
    const int64_t kept = move<in_b>(a, b, n, limit), moved = n - kept;
    if constexpr (in_b) {
      cut<false>(b, a + kept, moved, depth - 1);
      cut<true>(a, b + moved, kept, depth - 1);
    } else {
      cut<true>(b, a + kept, moved, depth - 1);
      cut<false>(a, b + moved, kept, depth - 1);
    }
  }
  template <bool in_b>
  static void cut_end(Key* a, Key* b, int64_t n) {
    static_assert(shortest % step == 0);
    Key keys[shortest], buffer[shortest];
    const int64_t padded = (n + step - 1) / step * step;
    std::memcpy(keys, a, size_t(n) * sizeof(Key));
    std::fill(keys + n, keys + padded, Key(~(uint64_t{1} << (8 * sizeof(Key) - 1))));
    std::memcpy(in_b ? b : a, sort_by_merges(keys, buffer, padded), size_t(n) * sizeof(Key));
  }
#endif

  DOVETAIL_CPU_INLINE static V load(const Key* from) {
    V v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  DOVETAIL_CPU_INLINE static void store(const V& v, Key* to) { std::memcpy(to, &v, sizeof v); }

  // Lane i and lane i ^ distance in order: the smaller one first, unless `descends` says otherwise of i.
  template <int distance, int block, int... i>
  DOVETAIL_CPU_INLINE static V exchanged(V v, std::integer_sequence<int, i...>) {
    const V other = __builtin_shufflevector(v, v, (i ^ distance)...);
    const V small = v < other ? v : other, large = v < other ? other : v;
    return __builtin_shufflevector(small, large, (((i & distance) != 0) != ((i & block) != 0) ? i + N : i)...);
  }
  template <int... i>
  DOVETAIL_CPU_INLINE static V reversed(V v, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(v, v, (N - 1 - i)...);
  }
  // Sorts blocks of `block` lanes that are bitonic, every other one downwards; of N lanes upwards.
  template <int block, int distance = block / 2>
  DOVETAIL_CPU_INLINE static V clean(V v) {
    v = exchanged<distance, block == N ? 0 : block>(v, Lanes());
    if constexpr (distance > 1) v = clean<block, distance / 2>(v);
    return v;
  }
  template <int block = 2>
  DOVETAIL_CPU_INLINE static V sorted(V v) {
    v = clean<block>(v);
    if constexpr (block < N) v = sorted<2 * block>(v);
    return v;
  }
  DOVETAIL_CPU_INLINE static void order(V& a, V& b) {
    const V small = a < b ? a : b;
    b = a < b ? b : a, a = small;
  }
  // Two runs of M vectors become one.
  template <int M>
  DOVETAIL_CPU_INLINE static void merge(V (&a)[M], V (&b)[M]) {
    V reverse[M];
    for (int i = 0; i < M; ++i) reverse[i] = reversed(b[M - 1 - i], Lanes());
    for (int i = 0; i < M; ++i) b[i] = reverse[i], order(a[i], b[i]);
    for (V(*half)[M] : {&a, &b}) {
#pragma GCC unroll 4
      for (int distance = M / 2; distance; distance /= 2)
        for (int i = 0; i < M; ++i)
          if (!(i & distance)) order((*half)[i], (*half)[i + distance]);
      for (V& v : *half) v = clean<N>(v);
    }
  }

  // [a, b) and [b, end), whose lengths are multiples of M vectors. What is written next is the smaller half of the
  // larger half so far and of the run that begins with the smaller key.
  template <int M>
  static void merge_runs(const Key* a, const Key* b, const Key* end, Key* out) {
    constexpr int64_t taken = M * N;
    const Key* const end_of_a = b;
    if (b == end) {
      std::memcpy(out, a, size_t(end - a) * sizeof(Key));
      return;
    }
    V low[M], high[M];
    for (int i = 0; i < M; ++i) low[i] = load(a + i * N), high[i] = load(b + i * N);
    a += taken, b += taken;
    for (;; out += taken) {
      merge(low, high);
      for (int i = 0; i < M; ++i) store(low[i], out + i * N);
      if (a == end_of_a && b == end) break;
      // Without branches, which would be wrong half of the time. A run that is at its end is not read beyond it.
      const Key first_of_a = *(a == end_of_a ? a - 1 : a), first_of_b = *(b == end ? b - 1 : b);
      const bool from_a = (b == end) | ((a != end_of_a) & (first_of_a < first_of_b));
      const int64_t in_a = -int64_t(from_a);
      const Key* const next = b + ((a - b) & in_a);
      a += taken & in_a, b += taken & ~in_a;
      for (int i = 0; i < M; ++i) low[i] = load(next + i * N);
    }
    for (int i = 0; i < M; ++i) store(high[i], out + taken + i * N);
  }
};
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
