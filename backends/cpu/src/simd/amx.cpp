#include "simd/amx.hpp"

#if defined(DOVETAIL_CPU_TILES)
#include <immintrin.h>

#include <cmath>

#include "simd/transpose.hpp"

// The level itself has neither of these; the compiler does not inline such functions into others.
#define DOVETAIL_CPU_AMX gnu::noinline, gnu::target("amx-tile,amx-bf16,amx-int8")
#define DOVETAIL_CPU_BF16 gnu::noinline, gnu::target("avx512bf16")

namespace dovetail::cpu::DOVETAIL_CPU_ISA::amx {
namespace {
struct alignas(64) Palette {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes[16];  // of a row
  uint8_t rows[16];
};
constexpr Palette palette{1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
static_assert(sizeof palette == 64);

// Rows x Columns tiles of c; they stay in registers 0 to 3, 4 and 5 have those of a, 6 and 7 those of b. The
// compiler does not see that tiles are read: the first statement keeps stores of the caller before them.
template <class T, class Sum, bool ASigned, bool BSigned, int Rows, int Columns>
[[DOVETAIL_CPU_AMX]] void block(int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_column, int64_t b_step,
                                Sum* c, int64_t c_row, bool add) {
  __asm__ volatile("" ::: "memory");
  constexpr int64_t part = sizeof(T), whole = sizeof(Sum);
  Sum* const below = c + side * c_row;
  if (add) {
    _tile_loadd(0, c, c_row * whole);
    if constexpr (Columns == 2) _tile_loadd(1, c + side, c_row * whole);
    if constexpr (Rows == 2) _tile_loadd(2, below, c_row * whole);
    if constexpr (Rows == 2 && Columns == 2) _tile_loadd(3, below + side, c_row * whole);
  } else {
    _tile_zero(0);
    if constexpr (Columns == 2) _tile_zero(1);
    if constexpr (Rows == 2) _tile_zero(2);
    if constexpr (Rows == 2 && Columns == 2) _tile_zero(3);
  }
#define DOVETAIL_ADD_PRODUCT(sum, x, y)                             \
  {                                                                 \
    if constexpr (sizeof(T) == 2) _tile_dpbf16ps(sum, x, y);        \
    else if constexpr (ASigned && BSigned) _tile_dpbssd(sum, x, y); \
    else if constexpr (ASigned) _tile_dpbsud(sum, x, y);            \
    else if constexpr (BSigned) _tile_dpbusd(sum, x, y);            \
    else _tile_dpbuud(sum, x, y);                                   \
  }
  for (; k > 0; k -= depth<T>, a += depth<T>, b += b_step) {
    _tile_loadd(4, a, a_row * part);
    _tile_loadd(6, b, depth<T> * part);
    DOVETAIL_ADD_PRODUCT(0, 4, 6)
    if constexpr (Columns == 2) {
      _tile_loadd(7, b + b_column, depth<T> * part);
      DOVETAIL_ADD_PRODUCT(1, 4, 7)
    }
    if constexpr (Rows == 2) {
      _tile_loadd(5, a + side * a_row, a_row * part);
      DOVETAIL_ADD_PRODUCT(2, 5, 6)
      if constexpr (Columns == 2) DOVETAIL_ADD_PRODUCT(3, 5, 7)
    }
  }
#undef DOVETAIL_ADD_PRODUCT
  _tile_stored(0, c, c_row * whole);
  if constexpr (Columns == 2) _tile_stored(1, c + side, c_row * whole);
  if constexpr (Rows == 2) _tile_stored(2, below, c_row * whole);
  if constexpr (Rows == 2 && Columns == 2) _tile_stored(3, below + side, c_row * whole);
}

template <bool ASigned, bool BSigned, class T, class Sum>
void multiply_blocks(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const Tiles<T>& b, Sum* c,
                     int64_t c_row, bool add) {
  for (int64_t i = 0; i < m; i += 2 * side, a += 2 * side * a_row, c += 2 * side * c_row) {
    const bool two = m - i > side;
    int64_t j = 0;
    for (; j + 2 * side <= n; j += 2 * side)
      (two ? block<T, Sum, ASigned, BSigned, 2, 2>
           : block<T, Sum, ASigned, BSigned, 1, 2>)(k, a, a_row, b.data + j / side * b.column, b.column, b.step,
                                                    c + j, c_row, add);
    if (j < n)
      (two ? block<T, Sum, ASigned, BSigned, 2, 1>
           : block<T, Sum, ASigned, BSigned, 1, 1>)(k, a, a_row, b.data + j / side * b.column, b.column, b.step,
                                                    c + j, c_row, add);
  }
}

// 2^x, to 1.5e-7 of it: floor(x) is the exponent, a polynomial has the rest.
DOVETAIL_CPU_INLINE __m512 exp2(__m512 x) {
  constexpr int below = 1, quiet = 8;
  const __m512 rest = _mm512_reduce_ps(x, below | quiet);
  __m512 y = _mm512_set1_ps(0.00187757669f);
  for (float c : {0.00898934063f, 0.0558263175f, 0.240153611f, 0.693153083f, 0.99999994f})
    y = _mm512_fmadd_ps(y, rest, _mm512_set1_ps(c));
  return _mm512_scalef_ps(y, x);
}

// The lanes of a vector in which `count` elements are.
DOVETAIL_CPU_INLINE __mmask16 lanes(int64_t count) {
  return count >= side ? 0xffff : count <= 0 ? 0 : __mmask16((1u << count) - 1);
}

// s = s * scale + mask, where a mask that hides takes the place of the score.
[[gnu::noinline]] void add_mask(float* __restrict s, int64_t n, float scale, const float* __restrict mask,
                                bool hides) {
  for (int64_t j = 0; j < n; ++j) {
    const float added = mask[j], x = s[j] * scale + added;
    s[j] = hides && added != 0 ? added : x;
  }
}

// NaN may get lost, as in attention::weigh.
DOVETAIL_CPU_INLINE float greatest(const float* s, int64_t n, float scale) {
  const __m512 by = _mm512_set1_ps(scale), least = _mm512_set1_ps(-__builtin_inff());
  __m512 best[4] = {least, least, least, least};
  int64_t j = 0;
  for (; j + 4 * side <= n; j += 4 * side)
    for (int i = 0; i < 4; ++i)
      best[i] = _mm512_max_ps(_mm512_mul_ps(_mm512_loadu_ps(s + j + i * side), by), best[i]);
  for (; j < n; j += side) {
    const __mmask16 there = lanes(n - j);
    const __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps(there, s + j), by);
    best[0] = _mm512_mask_max_ps(best[0], there, x, best[0]);
  }
  return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(best[0], best[1]), _mm512_max_ps(best[2], best[3])));
}

// exp(s * scale - top)
DOVETAIL_CPU_INLINE __m512 weights_of(__m512 s, __m512 scale, __m512 top) {
  return exp2(_mm512_mul_ps(_mm512_fmsub_ps(s, scale, top), _mm512_set1_ps(1.44269504f)));
}

DOVETAIL_CPU_INLINE float finite_or_zero(float x) { return x - x == 0 ? x : 0; }

// A whole tile whose rows, or columns, are contiguous.
template <class T>
void pack_rows(const T* in, int64_t row, T* out) {
  constexpr int64_t together = 4 / sizeof(T);
  for (int64_t p = 0; p < depth<T>; p += together) {
    __m512i words = {};
    for (int64_t i = 0; i < together; ++i) {
      const void* const from = in + (p + i) * row;
      __m512i x;
      if constexpr (together == 2) x = _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
      else x = _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
      words = _mm512_or_si512(words, _mm512_slli_epi32(x, unsigned(i * 32 / together)));
    }
    _mm512_storeu_si512(out + p * side, words);
  }
}
template <class T>
void pack_columns(const T* in, int64_t column, T* out) {
  constexpr int64_t eight = 32 / sizeof(T), word = 4 / sizeof(T);  // words; in elements
  for (int64_t j = 0; j < side; j += 8)
    for (int64_t p = 0; p < depth<T>; p += eight) {
      Square<uint32_t> words;
      for (int64_t i = 0; i < 8; ++i) std::memcpy(&words.row[i], in + (j + i) * column + p, 32);
      words.transpose();
      for (int64_t i = 0; i < 8; ++i) std::memcpy(out + (p / word + i) * depth<T> + word * j, &words.row[i], 32);
    }
}
}  // namespace

[[DOVETAIL_CPU_AMX]] void configure() { _tile_loadconfig(&palette); }
[[DOVETAIL_CPU_AMX]] void release() { _tile_release(); }

void multiply(int64_t m, int64_t n, int64_t k, const bf16* a, int64_t a_row, const Tiles<bf16>& b, float* c,
              int64_t c_row, bool add) {
  multiply_blocks<true, true>(m, n, k, a, a_row, b, c, c_row, add);
}
void multiply(int64_t m, int64_t n, int64_t k, const uint8_t* a, int64_t a_row, const Tiles<uint8_t>& b,
              Signs signs, int32_t* c, int64_t c_row, bool add) {
  const auto by_sign = [&](auto a_signed) {
    const auto multiply = signs.b ? multiply_blocks<a_signed(), true, uint8_t, int32_t>
                                  : multiply_blocks<a_signed(), false, uint8_t, int32_t>;
    multiply(m, n, k, a, a_row, b, c, c_row, add);
  };
  signs.a ? by_sign(std::true_type()) : by_sign(std::false_type());
}

template <class T>
void pack(int64_t k, int64_t n, const T* in, int64_t row, int64_t column, T* out) {
  const bool is_whole = k == depth<T> && n == side;
  if (is_whole && column == 1) return pack_rows(in, row, out);
  if (is_whole && row == 1) return pack_columns(in, column, out);
  T whole[tile<T>] = {};
  if (column == 1) {
    for (int64_t p = 0; p < k; ++p) std::memcpy(whole + p * side, in + p * row, size_t(n) * sizeof(T));
    return pack_rows(whole, side, out);
  }
  for (int64_t j = 0; j < n; ++j, in += column) {
    if (row == 1) std::memcpy(whole + j * depth<T>, in, size_t(k) * sizeof(T));
    else
      for (int64_t p = 0; p < k; ++p) whole[j * depth<T> + p] = in[p * row];
  }
  pack_columns(whole, depth<T>, out);
}
template void pack(int64_t, int64_t, const bf16*, int64_t, int64_t, bf16*);
template void pack(int64_t, int64_t, const uint8_t*, int64_t, int64_t, uint8_t*);

[[DOVETAIL_CPU_BF16]] float weigh(float* s, bf16* weights, int64_t n, int64_t padded, float scale,
                                  const float* mask, bool hides, float& top, float& sum) {
  if (mask) add_mask(s, n, scale, mask, hides), scale = 1;
  const float largest = greatest(s, n, scale), most = largest > top ? largest : top, least = -__builtin_inff();
  const float before = finite_or_zero(top), now = finite_or_zero(most);
  const __m512 by = _mm512_set1_ps(scale), of_top = _mm512_set1_ps(now);
  __m512 total[2] = {};
  int64_t j = 0;
  for (; j + depth<bf16> <= n; j += depth<bf16>) {
    const __m512 x = weights_of(_mm512_loadu_ps(s + j), by, of_top);
    const __m512 y = weights_of(_mm512_loadu_ps(s + j + side), by, of_top);
    total[0] = _mm512_add_ps(total[0], x), total[1] = _mm512_add_ps(total[1], y);
    _mm512_storeu_si512(weights + j, (__m512i)_mm512_cvtne2ps_pbh(y, x));
  }
  for (; j < padded; j += depth<bf16>) {
    __m512 e[2];
    for (int i = 0; i < 2; ++i) {
      const __mmask16 there = lanes(n - j - i * side);
      const __m512 x = weights_of(_mm512_maskz_loadu_ps(there, s + j + i * side), by, of_top);
      e[i] = _mm512_maskz_mov_ps(there, x);
      total[i] = _mm512_add_ps(total[i], e[i]);
    }
    _mm512_storeu_si512(weights + j, (__m512i)_mm512_cvtne2ps_pbh(e[1], e[0]));
  }
  const float factor = top == least ? 0 : before == now ? 1 : std::exp(before - now);
  top = most;
  sum = sum * factor + _mm512_reduce_add_ps(_mm512_add_ps(total[0], total[1]));
  return factor;
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::amx
#endif
