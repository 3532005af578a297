#include "simd/integer_gemm.hpp"

#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "isa.hpp"
#include "scratch.hpp"
#include "simd/amx.hpp"
#include "simd/transpose.hpp"

// Both operands are packed in words of 32 bits that hold `group` terms of a sum each: a in rows of words, b in
// panels of `panel` columns. One step of the loop multiplies a word of a with a vector of words of b and adds all
// their terms up. A Scheme says how.
namespace dovetail::cpu::DOVETAIL_CPU_ISA::integer_gemm {
namespace {
#if defined(__AVX512F__)
constexpr int vector_bytes = 64, most_rows = 14;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32, most_rows = 6;
#else
constexpr int vector_bytes = 16, most_rows = 6;
#endif
typedef uint32_t Words __attribute__((vector_size(vector_bytes)));
constexpr int lanes = vector_bytes / 4, panel = 2 * lanes;

DOVETAIL_CPU_INLINE Words load(const uint32_t* from) {
  Words w;
  std::memcpy(&w, from, sizeof w);
  return w;
}
DOVETAIL_CPU_INLINE void store(uint32_t* to, Words w) { std::memcpy(to, &w, sizeof w); }

// ---- schemes

// Four bytes to a word, packed as a's sign and b's sign say: the zero points are corrected in the result, by sums
// of rows and columns.
struct Bytes {
  static constexpr int group = 4;
  static constexpr bool corrects = true;
  using Element = uint8_t;
};

#if defined(__AVX512F__)
// The processor has it or not whatever the level, so that the instruction is written out.
struct Vnni : Bytes {
  static constexpr bool a_signed = true, b_signed = false;
  DOVETAIL_CPU_INLINE static void dot(Words& sum, Words a, Words b) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(b), "v"(a));
  }
};
#elif defined(__ARM_FEATURE_DOTPROD)
struct Dot : Bytes {
  static constexpr bool a_signed = true, b_signed = true;
  DOVETAIL_CPU_INLINE static void dot(Words& sum, Words a, Words b) {
    sum = Words(vdotq_s32(int32x4_t(sum), int8x16_t(b), int8x16_t(a)));
  }
};
#endif

#if defined(__x86_64__)
// Two differences from the zero points to a word. They have 9 bits and a sign: int32 holds the sum of two products.
struct Pairs {
  static constexpr int group = 2;
  static constexpr bool corrects = false;
  using Element [[gnu::may_alias]] = uint16_t;
  DOVETAIL_CPU_INLINE static void dot(Words& sum, Words a, Words b) {
#if defined(__AVX512F__)
    sum += Words(_mm512_madd_epi16(__m512i(b), __m512i(a)));
#elif defined(__AVX2__)
    sum += Words(_mm256_madd_epi16(__m256i(b), __m256i(a)));
#else
    sum += Words(_mm_madd_epi16(__m128i(b), __m128i(a)));
#endif
  }
};
#else
// One difference to a word: NEON multiplies 32 bits as fast as it brings pairs of 16 together.
struct Single {
  static constexpr int group = 1;
  static constexpr bool corrects = false;
  using Element = uint32_t;
  DOVETAIL_CPU_INLINE static void dot(Words& sum, Words a, Words b) { sum += a * b; }
};
#endif

// ---- packing

// An element as a scheme packs it: `flip` changes the sign of a byte's type, `zero` is subtracted.
struct Encoding {
  uint8_t flip;
  int32_t zero;
};

template <class Scheme, class In>
DOVETAIL_CPU_INLINE typename Scheme::Element encode(In x, Encoding how) {
  if constexpr (Scheme::corrects) return typename Scheme::Element(uint8_t(x) ^ how.flip);
  else return typename Scheme::Element(int32_t(x) - how.zero);
}

// k elements, `step` apart, as words; the last is filled up with zeros.
template <class Scheme, class In>
DOVETAIL_CPU_INLINE void encode_along(int64_t k, const In* in, int64_t step, Encoding how, uint32_t* words) {
  using Element = typename Scheme::Element;
  Element* const out = reinterpret_cast<Element*>(words);
  if (step == 1)
    for (int64_t p = 0; p < k; ++p) out[p] = encode<Scheme>(in[p], how);
  else
    for (int64_t p = 0; p < k; ++p) out[p] = encode<Scheme>(in[p * step], how);
  for (int64_t p = k; p % Scheme::group; ++p) out[p] = 0;
}

// The words of n rows or columns next to each other, of `terms` elements each, `step` apart.
template <class Scheme, class In>
DOVETAIL_CPU_INLINE void encode_across(int64_t n, int64_t terms, const In* in, int64_t step, uint8_t flip,
                                       const int32_t* zero, uint32_t* words) {
  constexpr int bits = 32 / Scheme::group;
  const auto term = [&](int64_t j, int64_t p) {
    return uint32_t(encode<Scheme>(in[p * step + j], {flip, Scheme::corrects ? 0 : zero[j]}));
  };
  if (terms == Scheme::group) {
    for (int64_t j = 0; j < n; ++j) {
      uint32_t word = 0;
#pragma GCC unroll 4
      for (int p = 0; p < Scheme::group; ++p) word |= term(j, p) << (p * bits % 32);
      words[j] = word;
    }
    return;
  }
  for (int64_t j = 0; j < n; ++j) {
    uint32_t word = 0;
    for (int64_t p = 0; p < terms; ++p) word |= term(j, p) << (p * bits % 32);
    words[j] = word;
  }
}

// ---- multiplying

// Rows x 2 vectors of c, of which `columns` are stored or added to what is there.
template <class Scheme, int Rows>
[[gnu::noinline]] void tile(int64_t words, const uint32_t* a, const uint32_t* b, uint32_t* c, int64_t c_row,
                            int64_t columns, bool add) {
  Words sum[Rows][2] = {};
  for (int64_t g = 0; g < words; ++g) {
    const Words b0 = load(b + g * panel), b1 = load(b + g * panel + lanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Words x = Words{} + a[g * Rows + r];
      Scheme::dot(sum[r][0], x, b0), Scheme::dot(sum[r][1], x, b1);
    }
  }
#pragma GCC unroll 16  // else the sums are in memory
  for (int r = 0; r < Rows; ++r) {
    uint32_t* const to = c + r * c_row;
    if (columns == panel) {
      store(to, add ? load(to) + sum[r][0] : sum[r][0]);
      store(to + lanes, add ? load(to + lanes) + sum[r][1] : sum[r][1]);
      continue;
    }
    uint32_t row[panel];
    store(row, sum[r][0]), store(row + lanes, sum[r][1]);
    for (int64_t j = 0; j < columns; ++j) to[j] = add ? to[j] + row[j] : row[j];
  }
}

using Tile = void (*)(int64_t, const uint32_t*, const uint32_t*, uint32_t*, int64_t, int64_t, bool);
template <class Scheme, int... Rows>
constexpr auto tiles_of(std::integer_sequence<int, Rows...>) {
  struct Tiles {
    Tile of[sizeof...(Rows)];
  };
  return Tiles{{tile<Scheme, Rows + 1>...}};
}
template <class Scheme>
inline constexpr auto tiles = tiles_of<Scheme>(std::make_integer_sequence<int, most_rows>());

// Products of few terms at a time: so many bytes of a packed operand stay in the second level cache.
constexpr int64_t most_bytes = 256 * 1024;

template <class Scheme>
class Job {
  static constexpr int group = Scheme::group;

 public:
  explicit Job(const Product& p) : p_(p), padded_(divide_up(p.n, panel) * panel) {
    if (p.m) rows_ = divide_up(p.m, divide_up(p.m, most_rows));
    if constexpr (Scheme::corrects) {
      a_flip_ = p.a.is_signed == Scheme::a_signed ? 0 : 128;
      b_flip_ = p.b.is_signed == Scheme::b_signed ? 0 : 128;
    }
  }

  bool run() {
    const int64_t wide = p_.m > padded_ ? p_.m : padded_;
    const int64_t wanted = most_bytes / 4 / wide * group;
    const int64_t most = wanted < 256 ? 256 : wanted > 1024 ? 1024 : wanted;
    const int64_t steps = divide_up(p_.k, most);
    const int64_t step = steps ? divide_up(divide_up(p_.k, steps), group) * group : 0;
    if (!allocate(step / group)) return false;
    find_zeros();
    if (!p_.k) clear();
    for (int64_t q = 0; q < p_.k; q += step) add_step(q, least(step, p_.k - q), q != 0);
    if (sums_rows_ || sums_columns_) correct(p_, {a_zero_, b_zero_, a_sum_, b_sum_});
    return true;
  }

 private:
  bool allocate(int64_t words) {
    const auto get = [](Scratch purpose, int64_t count) {
      return static_cast<uint32_t*>(scratch(purpose, size_t(count) * sizeof(uint32_t)));
    };
    a_ = get(Scratch::operand_a, p_.m * words), b_ = get(Scratch::operand_b, padded_ * words);
    turned_ = get(Scratch::kernel_2, panel * words);
    uint32_t* const rows = get(Scratch::kernel, 2 * (p_.m + padded_));
    if (!a_ || !b_ || !turned_ || !rows) return false;
    a_zero_ = reinterpret_cast<int32_t*>(rows), b_zero_ = a_zero_ + p_.m;
    a_sum_ = rows + p_.m + padded_, b_sum_ = a_sum_ + p_.m;
    return true;
  }

  // As the operands are packed.
  void find_zeros() {
    bool of_a = false, of_b = false;
    for (int64_t i = 0; i < p_.m; ++i) {
      a_zero_[i] = p_.a.zero_point(i) + (p_.a.is_signed ? a_flip_ : -a_flip_);
      of_a |= a_zero_[i] != 0, a_sum_[i] = 0;
    }
    for (int64_t j = 0; j < padded_; ++j) {
      b_zero_[j] = j < p_.n ? p_.b.zero_point(j) + (p_.b.is_signed ? b_flip_ : -b_flip_) : 0;
      of_b |= b_zero_[j] != 0, b_sum_[j] = 0;
    }
    sums_columns_ = Scheme::corrects && of_a, sums_rows_ = Scheme::corrects && of_b;
  }

  void clear() {
    for (int64_t i = 0; i < p_.m; ++i) std::memset(p_.c + i * p_.c_row, 0, size_t(p_.n) * sizeof(int32_t));
  }

  // Adds columns [q, q + k) of a times the same rows of b.
  void add_step(int64_t q, int64_t k, bool add) {
    const int64_t words = divide_up(k, group);
    pack_step(q, k, words);
    if constexpr (Scheme::corrects) {
      if (sums_rows_) add_rows(words);
      if (sums_columns_) add_columns(words);
    }
    for (int64_t j = 0; j < p_.n; j += panel)
      for (int64_t i = 0; i < p_.m; i += rows_)
        tiles<Scheme>.of[least(rows_, p_.m - i) - 1](words, a_ + i * words, b_ + j * words,
                                                     reinterpret_cast<uint32_t*>(p_.c) + i * p_.c_row + j, p_.c_row,
                                                     least(panel, p_.n - j), add);
  }

  // Rows of a in blocks of rows_, columns of b in panels.
  void pack_step(int64_t q, int64_t k, int64_t words) {
    const Side a{p_.m, rows_, p_.a.row, p_.a.column, a_flip_, a_zero_, a_},
        b{p_.n, panel, p_.b.column, p_.b.row, b_flip_, b_zero_, b_};
    if (p_.a.is_signed) pack(a, static_cast<const int8_t*>(p_.a.data) + q * a.along, k, words);
    else pack(a, static_cast<const uint8_t*>(p_.a.data) + q * a.along, k, words);
    if (p_.b.is_signed) pack(b, static_cast<const int8_t*>(p_.b.data) + q * b.along, k, words);
    else pack(b, static_cast<const uint8_t*>(p_.b.data) + q * b.along, k, words);
    clear_padding(words);
  }

  // n rows of a or columns of b, `across` apart, their elements `along`: `width` of them to a block.
  struct Side {
    int64_t n, width, across, along;
    uint8_t flip;
    const int32_t* zero;
    uint32_t* out;
  };
  template <class In>
  void pack(const Side& s, const In* in, int64_t k, int64_t words) {
    if (s.across == 1 && s.along != 1) {
      for (int64_t g = 0; g < words; ++g)
        for (int64_t j = 0; j < s.n; j += s.width) {
          const int64_t columns = least(s.width, s.n - j);
          encode_across<Scheme>(columns, least(group, k - g * group), in + g * group * s.along + j, s.along, s.flip,
                                s.zero + j, s.out + j * words + g * row_of(s, columns));
        }
      return;
    }
    for (int64_t j = 0; j < s.n; j += s.width) {
      const int64_t columns = least(s.width, s.n - j);
      for (int64_t i = 0; i < columns; ++i)
        encode_along<Scheme>(k, in + (j + i) * s.across, s.along, {s.flip, s.zero[j + i]}, turned_ + i * words);
      transpose(columns, words, turned_, words, s.out + j * words, row_of(s, columns),
                [](uint32_t w) { return w; });
    }
  }
  // The last block of a has fewer rows, the last panel of b is padded.
  static int64_t row_of(const Side& s, int64_t columns) { return s.width == panel ? panel : columns; }

  // What the columns beyond the last hold is multiplied, if not stored.
  void clear_padding(int64_t words) {
    if (p_.n == padded_) return;
    const int64_t j = padded_ - panel;
    for (int64_t g = 0; g < words; ++g)
      for (int64_t i = p_.n - j; i < panel; ++i) b_[j * words + g * panel + i] = 0;
  }

  // Of a's bytes, which are signed.
  void add_rows(int64_t words) {
    for (int64_t i = 0; i < p_.m; i += rows_) {
      const int64_t rows = least(rows_, p_.m - i);
      const auto* const block = reinterpret_cast<const int8_t*>(a_ + i * words);
      for (int64_t g = 0; g < words; ++g)
        for (int64_t r = 0; r < rows; ++r) {
          const int8_t* const at = block + (g * rows + r) * group;
          int32_t sum = 0;
          for (int p = 0; p < group; ++p) sum += at[p];
          a_sum_[i + r] += uint32_t(sum);
        }
    }
  }
  // The sum of a column is its product with ones.
  void add_columns(int64_t words) {
    const Words ones = Words{} + 0x01010101u;
    for (int64_t j = 0; j < padded_; j += lanes) {
      const uint32_t* const at = b_ + j / panel * panel * words + j % panel;
      Words sum = load(b_sum_ + j);
      for (int64_t g = 0; g < words; ++g) Scheme::dot(sum, ones, load(at + g * panel));
      store(b_sum_ + j, sum);
    }
  }

  const Product& p_;
  const int64_t padded_;  // n, in whole panels
  int64_t rows_ = 1;      // of a block of a
  uint8_t a_flip_ = 0, b_flip_ = 0;
  bool sums_rows_ = false, sums_columns_ = false;
  uint32_t *a_ = nullptr, *b_ = nullptr, *turned_ = nullptr, *a_sum_ = nullptr, *b_sum_ = nullptr;
  int32_t *a_zero_ = nullptr, *b_zero_ = nullptr;
};
}  // namespace

// With the zero points y of a and z of b:
// sum (a - y)(b - z) = sum a b - y sum b - z (sum a - k y)
void correct(const Product& p, const Corrections& by) {
  for (int64_t i = 0; i < p.m; ++i) {
    uint32_t* const c = reinterpret_cast<uint32_t*>(p.c) + i * p.c_row;
    const uint32_t y = uint32_t(by.a_zero[i]), rest = by.a_sum[i] - uint32_t(p.k) * y;
    for (int64_t j = 0; j < p.n; ++j) c[j] -= y * by.b_sum[j] + uint32_t(by.b_zero[j]) * rest;
  }
}

bool product(const Product& p) {
#if defined(DOVETAIL_CPU_TILES)
  constexpr int64_t worthwhile = 16 * 16 * 64;
  if (p.m * p.n * p.k >= worthwhile && may_use_tiles()) return product_in_tiles(p);
#endif
#if defined(__AVX512F__)
  if (features().int8_products) return Job<Vnni>(p).run();
#endif
#if defined(__x86_64__)
  return Job<Pairs>(p).run();
#elif defined(__ARM_FEATURE_DOTPROD)
  return Job<Dot>(p).run();
#else
  return Job<Single>(p).run();
#endif
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::integer_gemm
