#include "simd/gemm.hpp"

#include "simd/transpose.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm {
namespace {
template <class T>
DOVETAIL_CPU_INLINE constexpr T least(T a, T b) {
  return a < b ? a : b;
}

// Sums over k are made of runs, of `longest_run` products at most, which have sums of their own: rounding errors
// then grow with the number of runs. A run of a panel of b fits in the first cache. All ways to compute a product
// have the same runs, and so the same bits.
template <class T>
inline constexpr int64_t longest_run = sizeof(V<T>) == 64 ? 192 : 256;
template <class T>
DOVETAIL_CPU_INLINE int64_t run_length(int64_t k) {
  const int64_t runs = (k + longest_run<T> - 1) / longest_run<T>;
  return runs ? (k + runs - 1) / runs : 1;
}

template <int Rows, int Columns, class T>
DOVETAIL_CPU_INLINE void copy_rows(int64_t columns, const T* from, int64_t from_row, T* to, int64_t to_row) {
  constexpr int W = width<T>;
  if (columns == Columns * W) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int j = 0; j < Columns; ++j)
        V<T>(from + r * from_row + j * W, stdx::element_aligned)
            .copy_to(to + r * to_row + j * W, stdx::element_aligned);
  } else {
    for (int r = 0; r < Rows; ++r) std::memcpy(to + r * to_row, from + r * from_row, size_t(columns) * sizeof(T));
  }
}

// The rows of a panel of b, one after the other.
template <class T>
struct Stepped {
  const T* at;
  int64_t step;
  DOVETAIL_CPU_INLINE const T* next() {
    const T* const row = at;
    at += step;
    return row;
  }
};
// And with each a little of the next panel is read into the second cache.
template <class T>
struct Streamed {
  const T* at;
  int64_t step;
  const char* next_panel;
  int64_t bytes;
  DOVETAIL_CPU_INLINE const T* next() {
    const T* const row = at;
    at += step;
    __builtin_prefetch(next_panel, 0, 2);
    next_panel += bytes;
    return row;
  }
};
template <class T>
struct Listed {
  const T* data;
  const int64_t* offset;
  DOVETAIL_CPU_INLINE const T* next() { return data + *offset++; }
};

// Where a product is stored.
template <class T>
struct Target {
  T* at;
  int64_t row;
  bool add;                 // to what is there
  const T* bias = nullptr;  // of the columns, in whole panels; the last term of the sums
  const T* bias_of_rows = nullptr;

  Target from(int64_t i, int64_t j) const {
    return {at + i * row + j, row, add, bias ? bias + j : nullptr, bias_of_rows ? bias_of_rows + i : nullptr};
  }
};

// Rows x Columns vectors of c in registers. They go through a buffer if only some of the columns are stored,
// or if the rows of c map to the same cache lines.
template <class T, int Rows, int Columns, class B>
[[gnu::noinline]] void tile(int64_t k, const T* a, int64_t a_row, int64_t a_column, B b, const Target<T>& c,
                            int64_t columns, int64_t length) {
  constexpr int W = width<T>;
  T buffer[Rows][Columns * W];
  const bool in_place = columns == Columns * W && (k <= length || c.row * int64_t(sizeof(T)) % 1024);
  if (!in_place) {
    std::memset(buffer, 0, sizeof buffer);
    if (c.add) copy_rows<Rows, Columns>(columns, c.at, c.row, &buffer[0][0], Columns * W);
  }
  T* const to = in_place ? c.at : &buffer[0][0];
  const int64_t to_row = in_place ? c.row : Columns * W;
  bool add = c.add || !in_place;
  if (in_place && c.add)  // read last
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int j = 0; j < Columns; ++j) __builtin_prefetch(to + r * to_row + j * W, 1);
  do {
    V<T> sum[Rows][Columns] = {};
    const int64_t run = least(k, length);
    for (int64_t p = 0; p < run; ++p, a += a_column) {
      const T* const from = b.next();
      V<T> row[Columns];
#pragma GCC unroll 8
      for (int j = 0; j < Columns; ++j) row[j].copy_from(from + j * W, stdx::element_aligned);
      const T* four = a;  // rows: for 14 addresses, or distances, there are no registers
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        if (r && r % 4 == 0) {
          four += 4 * a_row;
          __asm__("" : "+r"(four));
        }
        const V<T> x = four[r % 4 * a_row];
#pragma GCC unroll 8
        for (int j = 0; j < Columns; ++j) sum[r][j] += x * row[j];
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int j = 0; j < Columns; ++j) {
        T* const at = to + r * to_row + j * W;
        if (add) sum[r][j] += V<T>(at, stdx::element_aligned);
        if (c.bias && k == run) sum[r][j] += V<T>(c.bias + j * W, stdx::element_aligned);
        if (c.bias_of_rows && k == run) sum[r][j] += V<T>(c.bias_of_rows[r]);
        sum[r][j].copy_to(at, stdx::element_aligned);
      }
    add = true;
    k -= run;
  } while (k);
  if (!in_place) copy_rows<Rows, Columns>(columns, &buffer[0][0], Columns * W, c.at, c.row);
}

template <class T, class B>
using Tile = void (*)(int64_t, const T*, int64_t, int64_t, B, const Target<T>&, int64_t, int64_t);
template <class T, class B, int Columns>
inline constexpr Tile<T, B> tiles_of[14] = {
    tile<T, 1, Columns, B>,
    tile<T, 2, Columns, B>,
    tile<T, 3, Columns, B>,
    tile<T, 4, Columns, B>,
    tile<T, 5, Columns, B>,
    tile<T, 6, Columns, B>,
    tile<T, least(tile_rows<T>, 7), Columns, B>,
    tile<T, least(tile_rows<T>, 8), Columns, B>,
    tile<T, least(tile_rows<T>, 9), Columns, B>,
    tile<T, least(tile_rows<T>, 10), Columns, B>,
    tile<T, least(tile_rows<T>, 11), Columns, B>,
    tile<T, least(tile_rows<T>, 12), Columns, B>,
    tile<T, least(tile_rows<T>, 13), Columns, B>,
    tile<T, least(tile_rows<T>, 14), Columns, B>,
};

// Rows of equal blocks, none smaller than needed: 16 rows are 8 + 8, not 14 + 2.
template <class T>
DOVETAIL_CPU_INLINE int64_t block_rows(int64_t m) {
  const int64_t blocks = (m + tile_rows<T> - 1) / tile_rows<T>;
  return (m + blocks - 1) / blocks;
}

// A in the order in which `multiply` reads it: blocks of `rows` rows, `block` apart.
template <class T>
struct Blocks {
  const T* data;
  int64_t rows, block, row, column;
};

// Panels of weights, which come from memory: see Streamed.
template <class T>
struct Weights {
  Panels<T> panels;
  int64_t n, k;
};

// The rows of the panel at column j, for block `i` of `blocks` that read it one after the other.
template <class T>
DOVETAIL_CPU_INLINE Stepped<T> rows_of(const Panels<T>& b, int64_t j, int64_t, int64_t) {
  return {b.data + j / panel<T> * b.stride, b.row};
}
template <class T>
DOVETAIL_CPU_INLINE Streamed<T> rows_of(const Weights<T>& b, int64_t j, int64_t i, int64_t blocks) {
  const T* const at = b.panels.data + j / panel<T> * b.panels.stride;
  const int64_t bytes = (panel<T> * int64_t(sizeof(T)) + blocks - 1) / blocks;
  const T* const next = j + panel<T> < b.n ? at + b.panels.stride : at;
  return {at, b.panels.row, reinterpret_cast<const char*>(next) + i * b.k * bytes, bytes};
}
template <class T>
DOVETAIL_CPU_INLINE Listed<T> rows_of(const Shifted<T>& b, int64_t j, int64_t, int64_t) {
  return {b.data + j, b.offset};
}
// Whether more columns than a panel's lie side by side.
template <class T>
DOVETAIL_CPU_INLINE bool is_wide(const Panels<T>& b) {
  return b.stride == panel<T>;
}
template <class T>
DOVETAIL_CPU_INLINE bool is_wide(const Shifted<T>&) {
  return true;
}

// One or two rows: tiles of more columns, for as many sums as a processor adds to at a time. The first of the
// columns that remain.
template <int Rows, int Columns, class T, class B>
int64_t multiply_wide(int64_t j, int64_t n, int64_t k, const Blocks<T>& a, const B& b, const Target<T>& c,
                      int64_t length) {
  for (constexpr int64_t step = Columns * width<T>; j + step <= n; j += step)
    tile<T, Rows, Columns>(k, a.data, a.row, a.column, rows_of(b, j, 0, 1), c.from(0, j), step, length);
  return j;
}

template <class T, class B>
void multiply_blocks(int64_t m, int64_t n, int64_t k, const Blocks<T>& a, const B& b, const Target<T>& c,
                     int64_t length) {
  using Rows = decltype(rows_of(b, 0, 0, 1));
  constexpr int P = panel<T>, Wide = sizeof(V<T>) == 64 ? 8 : 4;
  int64_t j = 0;
  if constexpr (!std::is_same_v<B, Weights<T>>) {
    if (m == 1 && is_wide(b)) j = multiply_wide<1, Wide>(0, n, k, a, b, c, length);
    if (m == 2 && is_wide(b)) j = multiply_wide<2, Wide == 8 ? 6 : 4>(0, n, k, a, b, c, length);
    if (m <= 2 && is_wide(b))
      j = m == 1 ? multiply_wide<1, 4>(j, n, k, a, b, c, length) : multiply_wide<2, 4>(j, n, k, a, b, c, length);
  }
  const int64_t blocks = (m + a.rows - 1) / a.rows;
  for (; j < n; j += P) {
    const int64_t columns = least<int64_t>(P, n - j);
    const Tile<T, Rows>* const tiles = columns > width<T> ? tiles_of<T, Rows, 2> : tiles_of<T, Rows, 1>;
    for (int64_t i = 0, block = 0; i < m; i += a.rows, ++block)
      tiles[least(a.rows, m - i) - 1](k, a.data + block * a.block, a.row, a.column, rows_of(b, j, block, blocks),
                                      c.from(i, j), columns, length);
  }
}

// Rows whose distance is a multiple of this map to the same few cache lines.
template <class T>
DOVETAIL_CPU_INLINE bool aliases(int64_t stride) {
  return stride * int64_t(sizeof(T)) % 4096 == 0;
}

// Products too small for any preparation: vectors of 16 bytes along n if b allows it.
template <class T>
void tiny(const Product<T>& p) {
  typedef T Quad __attribute__((vector_size(16)));
  constexpr int N = 16 / sizeof(T);
  for (int64_t i = 0; i < p.m; ++i) {
    const T* const a = p.a + i * p.a_row;
    T* const c = p.c + i * p.c_row;
    int64_t j = 0;
    if (p.b_column == 1 && p.c_column == 1)
      for (; j + N <= p.n; j += N) {
        Quad sum = {}, row;
        for (int64_t q = 0; q < p.k; ++q) {
          std::memcpy(&row, p.b + q * p.b_row + j, 16);
          sum += a[q * p.a_column] * row;
        }
        if (p.bias) std::memcpy(&row, p.bias + j, 16), sum += row;
        std::memcpy(c + j, &sum, 16);
      }
    for (; j < p.n; ++j) {
      T sum = 0;
      for (int64_t q = 0; q < p.k; ++q) sum += a[q * p.a_column] * p.b[q * p.b_row + j * p.b_column];
      c[j * p.c_column] = p.bias ? sum + p.bias[j] : sum;
    }
  }
}

}  // namespace

template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column, const Panels<T>& b,
              T* c, int64_t c_row, bool add) {
  const int64_t rows = block_rows<T>(m);
  multiply_blocks<T>(m, n, k, {a, rows, rows * a_row, a_row, a_column}, b, {c, c_row, add}, run_length<T>(k));
}
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column, const Shifted<T>& b,
              T* c, int64_t c_row, bool add, const T* bias) {
  const int64_t rows = block_rows<T>(m);
  multiply_blocks<T>(m, n, k, {a, rows, rows * a_row, a_row, a_column}, b, {c, c_row, add, nullptr, bias},
                     run_length<T>(k));
}

template <class In>
void pack(int64_t k, int64_t n, const In* in, int64_t row, int64_t column, int width, Accumulator<In>* out) {
  using T = Accumulator<In>;
  for (int64_t j = 0; j < n; j += width, in += width * column, out += k * width) {
    const int64_t columns = least<int64_t>(width, n - j);
    if (columns < width)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t q = columns; q < width; ++q) out[p * width + q] = 0;
    if constexpr (is_half<In>)
      if (column == 1) {
        for (int64_t p = 0; p < k; ++p) widen(in + p * row, out + p * width, columns);
        continue;
      }
    if (column == 1 && columns == panel<T>) {
      for (int64_t p = 0; p < k; ++p)
        for (int q = 0; q < panel<T>; q += gemm::width<T>)
          V<T>([&](auto i) {
            return load(in[p * row + q + int64_t(i)]);
          }).copy_to(out + p * width + q, stdx::element_aligned);
    } else if (column == 1) {
      for (int64_t p = 0; p < k; ++p)
        for (int64_t q = 0; q < columns; ++q) out[p * width + q] = load(in[p * row + q]);
    } else if (row == 1) {
      transpose(columns, k, in, column, out, width, [](In x) -> T { return load(x); });
    } else {
      for (int64_t p = 0; p < k; ++p)
        for (int64_t q = 0; q < columns; ++q) out[p * width + q] = load(in[p * row + q * column]);
    }
  }
}

namespace {
// The product with vectors along n; `bias_of_row`: bias belongs to the rows of this product.
template <class In, class Out>
class Job {
  using T = Accumulator<In>;
  static constexpr bool converts = !std::is_same_v<In, T>;
  static constexpr int P = panel<T>;
  static constexpr int64_t padding = 64 / sizeof(T);  // a line of the cache
  // Processors with vectors of 64 bytes have a second cache of a megabyte or more.
  static constexpr bool large_cache = sizeof(V<T>) == 64;
  static constexpr int64_t block_bytes = (large_cache ? 768 : 128) << 10;  // of a, in the second cache

 public:
  Job(const Product<In, Out>& p, bool bias_of_row) : p_(p), bias_of_row_(bias_of_row) {}

  bool run() {
    // An operand is read in place unless it has another type, or many passes over it would thrash cache
    // lines.
    direct_a_ = !converts && !(aliases<T>(p_.a_row) && p_.k > 64 && p_.m > 4 && p_.n > 4 * P);
    const bool few_rows = p_.m <= 2 * tile_rows<T>;
    direct_b_ = !converts && p_.b_column == 1 && (few_rows || (p_.m <= 32 && !aliases<T>(p_.b_row)) || p_.k <= 64);
    direct_c_ = std::is_same_v<Out, T> && p_.c_column == 1;
    // A run of a panel of b stays in the first cache for all rows. More runs pass less often over c: few rows read
    // them once, and a large second cache brings them as fast as they are used.
    length_ = run_length<T>(p_.k);
    const int64_t step = (large_cache ? 4 : few_rows ? 3 : 1) * length_;
    rows_ = block_rows<T>(p_.m);
    const int64_t blocks = block_bytes / (rows_ * step * int64_t(sizeof(T)));
    most_rows_ = rows_ * (blocks > 0 ? blocks : 1);
    c_ = reinterpret_cast<T*>(p_.c), c_row_ = p_.c_row;
    if (!direct_c_) {
      c_row_ = p_.n;
      c_ = static_cast<T*>(scratch(Scratch::result, size_t(p_.m * p_.n) * sizeof(T)));
    }
    const int64_t b_columns = p_.panels ? 0 : direct_b_ ? (p_.n % P ? P : 0) : p_.n;
    const size_t a_size = size_packed(step + padding, least(p_.m, most_rows_), int(rows_));
    a_ = static_cast<T*>(direct_a_ ? nullptr : scratch(Scratch::operand_a, a_size));
    b_ = static_cast<T*>(b_columns ? scratch(Scratch::operand_b, size_packed(step, b_columns, P)) : nullptr);
    if (!c_ || (!direct_a_ && !a_) || (b_columns && !b_)) return false;
    // Added last: each term of a sum that begins with a large bias would be rounded to the bias's digits.
    if (p_.bias && !bias_of_row_ && !widen_bias()) return false;
    if (!p_.k) clear();
    for (int64_t q = 0; q < p_.k; q += step) add_step(q, least(step, p_.k - q));
    if (p_.bias && bias_of_row_) add_to_rows();
    if (!direct_c_) finish();
    return true;
  }

 private:
  static size_t size_packed(int64_t k, int64_t n, int width) {
    return size_t(packed_size(k, n, width)) * sizeof(T);
  }

  void add_to_rows() {
    for (int64_t i = 0; i < p_.m; ++i) {
      const T bias = load(p_.bias[i]);
      for (int64_t j = 0; j < p_.n; ++j) c_[i * c_row_ + j] += bias;
    }
  }
  // The bias in whole panels, of the type in which sums are made.
  bool widen_bias() {
    if constexpr (!converts)
      if (p_.n % P == 0) return bias_ = p_.bias, true;
    T* const bias = static_cast<T*>(scratch(Scratch::partial_result, size_t((p_.n + P - 1) / P * P) * sizeof(T)));
    if (!bias) return false;
    for (int64_t j = 0; j < p_.n; ++j) bias[j] = load(p_.bias[j]);
    std::memset(bias + p_.n, 0, size_t((P - p_.n % P) % P) * sizeof(T));
    bias_ = bias;
    return true;
  }
  void clear() {
    for (int64_t i = 0; i < p_.m; ++i)
      for (int64_t j = 0; j < p_.n; ++j) c_[i * c_row_ + j] = bias_ ? bias_[j] : T(0);
  }

  // Adds columns [q, q + k) of a times the same rows of b.
  void add_step(int64_t q, int64_t k) {
    const In* const b = p_.b + q * p_.b_row;
    const bool in_place = !converts && direct_b_ && !p_.panels;
    const int64_t whole = in_place ? p_.n / P * P : 0;  // columns that are not packed
    if (whole < p_.n && !p_.panels) pack(k, p_.n - whole, b + whole * p_.b_column, p_.b_row, p_.b_column, P, b_);
    const Panels<T> packed{b_, k * P, P};
    for (int64_t i = 0; i < p_.m; i += most_rows_) {
      const int64_t m = least(most_rows_, p_.m - i);
      const Blocks<T> blocks = rows_of_a(i, m, q, k);
      const Target<T> c{c_ + i * c_row_, c_row_, q != 0, q + k == p_.k ? bias_ : nullptr};
      if constexpr (!converts)
        if (whole) multiply_blocks<T>(m, whole, k, blocks, Panels<T>{b, P, p_.b_row}, c, length_);
      if constexpr (std::is_same_v<In, float>)
        if (p_.panels) {
          const Weights<T> weights{{p_.panels + q * P, p_.k * P, P}, p_.n, k};
          multiply_blocks<T>(m, p_.n, k, blocks, weights, c, length_);
          continue;
        }
      if (whole < p_.n) multiply_blocks<T>(m, p_.n - whole, k, blocks, packed, c.from(0, whole), length_);
    }
  }

  Blocks<T> rows_of_a(int64_t i, int64_t m, int64_t q, int64_t k) {
    const In* const a = p_.a + i * p_.a_row + q * p_.a_column;
    if constexpr (!converts)
      if (direct_a_) return {a, rows_, rows_ * p_.a_row, p_.a_row, p_.a_column};
    if constexpr (!converts || is_half<In>)
      if (p_.a_column == 1) {  // its rows, which do not map to the same cache lines here
        const int64_t row = k + padding;
        for (int64_t r = 0; r < m; ++r) {
          if constexpr (converts) widen(a + r * p_.a_row, a_ + r * row, k);
          else std::memcpy(a_ + r * row, a + r * p_.a_row, size_t(k) * sizeof(T));
        }
        return {a_, rows_, rows_ * row, row, 1};
      }
    pack(k, m, a, p_.a_column, p_.a_row, int(rows_), a_);
    return {a_, rows_, rows_ * k, 1, rows_};
  }

  // From the scratch result to c.
  void finish() {
    if (p_.c_row == 1) {
      transpose(p_.m, p_.n, c_, c_row_, p_.c, p_.c_column, [](T x) { return store<Out>(x); });
      return;
    }
    for (int64_t i = 0; i < p_.m; ++i) {
      const T* const from = c_ + i * c_row_;
      Out* const to = p_.c + i * p_.c_row;
      if constexpr (is_half<Out>)
        if (p_.c_column == 1) {
          narrow(from, to, p_.n);
          continue;
        }
      for (int64_t j = 0; j < p_.n; ++j) to[j * p_.c_column] = store<Out>(from[j]);
    }
  }

  const Product<In, Out>& p_;
  bool bias_of_row_, direct_a_ = false, direct_b_ = false, direct_c_ = false;
  int64_t rows_ = 0, most_rows_ = 0;  // of a block, of a that are packed at a time
  int64_t c_row_ = 0, length_ = 1;    // of a run
  T *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
  const T* bias_ = nullptr;
};

// Whether vectors along m are better. They need the operand along m in panels and the others in place.
template <class In, class Out>
bool better_transposed(const Product<In, Out>& p) {
  constexpr int W = width<Accumulator<In>>;
  if (p.b_column == 1 && p.n >= W) return false;
  if (p.a_row == 1 && p.a_column != 1 && p.m > p.n) return true;  // n is less than a vector, or b needs packing
  return p.b_row == 1 && p.m < p.n && p.n > W;                    // both need packing: a is smaller
}
}  // namespace

template <class In, class Out>
bool product(const Product<In, Out>& p) {
  if constexpr (std::is_same_v<In, Out> && std::is_floating_point_v<In>) {
    if (p.k <= 32 && p.m * p.n * p.k <= (p.b_column == 1 ? 1024 : 256)) return tiny(p), true;
  }
  if constexpr (std::is_floating_point_v<Accumulator<In>>)
    if (few_rows(p)) return true;
  if (p.panels || !better_transposed(p)) return Job<In, Out>(p, false).run();
  const Product<In, Out> t{p.n,        p.m,     p.k, p.b,        p.b_column, p.b_row, p.a,
                           p.a_column, p.a_row, p.c, p.c_column, p.c_row,    p.bias};
  return Job<In, Out>(t, true).run();
}

#define DOVETAIL_MULTIPLY(T)                                                                                       \
  template void multiply<T>(int64_t, int64_t, int64_t, const T*, int64_t, int64_t, const Panels<T>&, T*, int64_t,  \
                            bool);                                                                                 \
  template void multiply<T>(int64_t, int64_t, int64_t, const T*, int64_t, int64_t, const Shifted<T>&, T*, int64_t, \
                            bool, const T*);
DOVETAIL_MULTIPLY(float)
DOVETAIL_MULTIPLY(double)
DOVETAIL_MULTIPLY(uint32_t)
DOVETAIL_MULTIPLY(uint64_t)
#define DOVETAIL_PRODUCT(In, Out)                                                               \
  template void pack<In>(int64_t, int64_t, const In*, int64_t, int64_t, int, Accumulator<In>*); \
  template bool product<In, Out>(const Product<In, Out>&);
DOVETAIL_PRODUCT(float, float)
DOVETAIL_PRODUCT(double, double)
DOVETAIL_PRODUCT(f16, f16)
DOVETAIL_PRODUCT(bf16, bf16)
DOVETAIL_PRODUCT(uint8_t, uint8_t)
DOVETAIL_PRODUCT(uint16_t, uint16_t)
DOVETAIL_PRODUCT(uint32_t, uint32_t)
DOVETAIL_PRODUCT(uint64_t, uint64_t)
DOVETAIL_PRODUCT(int16_t, uint32_t)
template bool product<f16, float>(const Product<f16, float>&);
template bool product<bf16, float>(const Product<bf16, float>&);
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm
