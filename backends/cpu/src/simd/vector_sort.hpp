// Sorting whole numbers by vectors: short arrays in registers, longer ones by merging their runs, four vectors at a
// time. Where the chosen lanes of a vector are packed fast, long arrays are cut into short ones by pivots before;
// C. A. R. Hoare, "Quicksort" (1962).
#pragma once
#include <algorithm>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "simd/register_sort.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
template <class Key>
class VectorSort {
  using Registers = RegisterSort<Key>;
  using V = typename Registers::V;
  static constexpr int N = Registers::N;
  static constexpr Key largest = Registers::largest;

 public:
  static constexpr int64_t step = 4 * N;  // n is a multiple of it

  // Returns `keys` or `buffer`, of n elements each: where the sorted keys are.
  static Key* sort(Key* keys, Key* buffer, int64_t n) {
#if defined(__AVX2__)
    if (n > 4 * shortest) return cut<false>(keys, buffer, n, 2 * (63 - __builtin_clzll(uint64_t(n)))), keys;
#endif
    return sort_by_merges(keys, buffer, n);
  }
  // [a, b) and [b, end) are sorted, and their lengths multiples of `step`.
  static void merge(const Key* a, const Key* b, const Key* end, Key* out) { merge_runs<4>(a, b, end, out); }

 private:
  static Key* sort_by_merges(Key* keys, Key* buffer, int64_t n) {
    for (int64_t i = 0; i < n; i += Registers::most) Registers::sort(keys + i, least(Registers::most, n - i));
    for (int64_t run = Registers::most; run < n; run *= 2) {
      for (int64_t i = 0; i < n; i += 2 * run) {
        const int64_t middle = least(i + run, n), end = least(i + 2 * run, n);
        merge(keys + i, keys + middle, keys + end, buffer + i);
      }
      std::swap(keys, buffer);
    }
    return keys;
  }

#if defined(__AVX2__)
  static constexpr int64_t shortest = 512;  // arrays that merges sort

#if defined(__AVX512F__)
  // The chosen lanes of v, side by side; the others are undefined.
  DOVETAIL_CPU_INLINE static V chosen(const V& v, unsigned lanes) {
    if constexpr (sizeof(Key) == 4) return V(_mm512_maskz_compress_epi32(__mmask16(lanes), __m512i(v)));
    else return V(_mm512_maskz_compress_epi64(__mmask8(lanes), __m512i(v)));
  }
  DOVETAIL_CPU_INLINE static unsigned below(const V& v, Key limit) {
    if constexpr (sizeof(Key) == 4) return _mm512_cmplt_epi32_mask(__m512i(v), _mm512_set1_epi32(limit));
    else return _mm512_cmplt_epi64_mask(__m512i(v), _mm512_set1_epi64(limit));
  }
#else
  // For each choice of lanes the numbers of their four bytes each, those of the others after them.
  static constexpr auto packing = [] {
    constexpr int parts = sizeof(Key) / 4;
    std::array<std::array<uint8_t, 8>, size_t{1} << N> made{};
    for (size_t lanes = 0; lanes < made.size(); ++lanes) {
      size_t at = 0;
      for (int chosen = 1; chosen >= 0; --chosen)
        for (int i = 0; i < N; ++i)
          for (int part = 0; part < parts; ++part)
            if (int(lanes >> i & 1) == chosen) made[lanes][at++] = uint8_t(i * parts + part);
    }
    return made;
  }();
  DOVETAIL_CPU_INLINE static V chosen(const V& v, unsigned lanes) {
    const auto* const from = reinterpret_cast<const __m128i*>(packing[lanes].data());
    return V(_mm256_permutevar8x32_epi32(__m256i(v), _mm256_cvtepu8_epi32(_mm_loadl_epi64(from))));
  }
  DOVETAIL_CPU_INLINE static unsigned below(const V& v, Key limit) {
    const __m256i lanes(v < limit);
    if constexpr (sizeof(Key) == 4) return unsigned(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
    else return unsigned(_mm256_movemask_pd(_mm256_castsi256_pd(lanes)));
  }
#endif
  // Moves the keys of a that are smaller than the limit, or the others, to b; the rest closes up. Returns its
  // number.
  template <bool small>
  static int64_t move(Key* a, Key* b, int64_t n, Key limit) {
    constexpr unsigned all = (1u << N) - 1;
    int64_t kept = 0, i = 0;
    for (; i + N <= n; i += N) {
      const V v = Registers::load(a + i);
      const unsigned lanes = below(v, limit), moved = small ? lanes : ~lanes & all;
      Registers::store(chosen(v, moved), b + (i - kept));
      Registers::store(chosen(v, ~moved & all), a + kept);
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
    Registers::sort(sample, N);
    const bool equal = sample[0] == sample[N - 1] && std::all_of(a, a + n, [=](Key k) { return k == *sample; });
    if (equal || !depth) {
      // A comparison of our own: an instance for plain numbers would be shared with code for other processors.
      if (!equal) std::sort(a, a + n, [](Key x, Key y) { return x < y; });
      if (in_b) std::memcpy(b, a, size_t(n) * sizeof(Key));
      return;
    }
    // At least one key is smaller.
    Key limit = sample[N / 2];
    if (limit == sample[0] && limit < largest) ++limit;
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
    Registers::pad(keys + n, padded - n);
    std::memcpy(in_b ? b : a, sort_by_merges(keys, buffer, padded), size_t(n) * sizeof(Key));
  }
#endif

  // Two runs of M vectors become one.
  template <int M>
  DOVETAIL_CPU_INLINE static void merge(V (&a)[M], V (&b)[M]) {
    V reverse[M];
    for (int i = 0; i < M; ++i) reverse[i] = Registers::reversed(b[M - 1 - i]);
    for (int i = 0; i < M; ++i) b[i] = reverse[i], Registers::order(a[i], b[i]);
    for (V(*half)[M] : {&a, &b}) {
#pragma GCC unroll 4
      for (int distance = M / 2; distance; distance /= 2)
        for (int i = 0; i < M; ++i)
          if (!(i & distance)) Registers::order((*half)[i], (*half)[i + distance]);
      for (V& v : *half) Registers::clean(v);
    }
  }

  // What is written next is the smaller half of the
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
    for (int i = 0; i < M; ++i) low[i] = Registers::load(a + i * N), high[i] = Registers::load(b + i * N);
    a += taken, b += taken;
    for (;; out += taken) {
      merge(low, high);
      for (int i = 0; i < M; ++i) Registers::store(low[i], out + i * N);
      if (a == end_of_a && b == end) break;
      // Without branches, which would be wrong half of the time. A run that is at its end is not read beyond it.
      const Key first_of_a = *(a == end_of_a ? a - 1 : a), first_of_b = *(b == end ? b - 1 : b);
      const bool from_a = (b == end) | ((a != end_of_a) & (first_of_a < first_of_b));
      const int64_t in_a = -int64_t(from_a);
      const Key* const next = b + ((a - b) & in_a);
      a += taken & in_a, b += taken & ~in_a;
      for (int i = 0; i < M; ++i) low[i] = Registers::load(next + i * N);
    }
    for (int i = 0; i < M; ++i) Registers::store(high[i], out + taken + i * N);
  }
};
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
