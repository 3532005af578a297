#include "simd/gemm_tiles.hpp"

#include "simd/transpose.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm {
namespace {
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

// H to 2 H elements, as two parts that overlap; false: there are fewer or more.
template <int H, class T>
DOVETAIL_CPU_INLINE bool copy_halves(int64_t n, const T* in, T* out) {
  if (H <= 1 || n < H || n > 2 * H) return false;
  std::memcpy(out, in, H * sizeof(T)), std::memcpy(out + n - H, in + n - H, H * sizeof(T));
  return true;
}
// n elements one after the other.
template <class In>
DOVETAIL_CPU_INLINE void copy_row(int64_t n, const In* in, Accumulator<In>* out) {
  using T = Accumulator<In>;
  if constexpr (is_half<In>) return widen(in, out, n);
  if (n == panel<T>) {
    for (int q = 0; q < panel<T>; ++q) out[q] = load(in[q]);
    return;
  }
  if constexpr (std::is_same_v<In, T>)
    if (copy_halves<width<T> / 2>(n, in, out) || copy_halves<width<T> / 4>(n, in, out)) return;
  for (int64_t q = 0; q < n; ++q) out[q] = load(in[q]);
}

// `pack` with panels that are `stride` apart.
template <class In>
void pack_rows(int64_t k, int64_t n, const In* in, int64_t row, int64_t column, int width, int64_t stride,
               Accumulator<In>* out) {
  using T = Accumulator<In>;
  constexpr int64_t at_once = sizeof(V<T>) == 64 ? 4 : 16;  // rows of all panels: their lines follow each other
  const int64_t step = column == 1 ? at_once : k;
  for (int64_t first = 0; first < k; first += step, in += step * row, out += step * width) {
    const int64_t rows = least(step, k - first);
    for (int64_t j = 0; j < n; j += width) {
      const int64_t columns = least<int64_t>(width, n - j);
      const In* const from = in + j * column;
      T* const to = out + j / width * stride;
      if (row == 1 && column != 1) {
        transpose(columns, rows, from, column, to, width, [](In x) -> T { return load(x); });
      } else {
        for (int64_t p = 0; p < rows; ++p)
          if (column == 1) {
            const In* const later = from + (p + step) * row;
            __builtin_prefetch(later), __builtin_prefetch(later + columns - 1);
            copy_row(columns, from + p * row, to + p * width);
          } else
            for (int64_t q = 0; q < columns; ++q) to[p * width + q] = load(from[p * row + q * column]);
      }
      for (int64_t p = 0; columns < width && p < rows; ++p)
        for (int64_t q = columns; q < width; ++q) to[p * width + q] = 0;
    }
  }
}
}  // namespace

template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column, const Panels<T>& b,
              T* c, int64_t c_row, bool add) {
  const int64_t rows = block_rows<T>(m, n);
  multiply_blocks<T>(m, n, k, {a, rows, rows * a_row, a_row, a_column}, b, {c, c_row, add}, run_length<T>(k));
}
template <class In>
void pack(int64_t k, int64_t n, const In* in, int64_t row, int64_t column, int width, Accumulator<In>* out) {
  pack_rows(k, n, in, row, column, width, k * width, out);
}
template <class T>
void pack_some(int64_t k, int64_t n, const T* in, int64_t row, int64_t column, int64_t stride, T* out) {
  pack_rows(k, n, in, row, column, panel<T>, stride, out);
}
template void pack_some<float>(int64_t, int64_t, const float*, int64_t, int64_t, int64_t, float*);
template void pack_some<double>(int64_t, int64_t, const double*, int64_t, int64_t, int64_t, double*);

namespace {
// The product with vectors along n, where c is contiguous along n; `bias_of_row`: bias belongs to the rows of this
// product.
template <class In>
class Job {
  using T = Accumulator<In>;
  static constexpr bool converts = !std::is_same_v<In, T>;
  static constexpr int P = panel<T>;
  static constexpr int64_t padding = 64 / sizeof(T);  // a line of the cache
  // Processors with vectors of 64 bytes have a second cache of a megabyte or more.
  static constexpr bool large_cache = sizeof(V<T>) == 64;
  static constexpr int64_t small_bytes = (large_cache ? 768 : 128) << 10,  // of a product that stays there
      chunk_bytes = (large_cache ? 512 : 128) << 10;                       // of an operand, in the second cache
  // There, many runs of a few rows of a, which each panel of b passes: c is written once, and never read. Panels
  // packed here are in the third cache.
  static constexpr bool by_panels = large_cache && std::is_floating_point_v<T>;
  static constexpr int64_t panel_bytes = by_panels ? 3 << 20 : chunk_bytes;

 public:
  Job(const Product<In, T>& p, bool bias_of_row) : p_(p), bias_of_row_(bias_of_row) {}

  bool run() {
    // An operand is read in place unless it has another type, or many passes over it would thrash cache
    // lines.
    const int64_t spread = p_.k * (p_.a_column < 0 ? -p_.a_column : p_.a_column) * int64_t(sizeof(T));
    const bool scattered = aliases<T>(p_.a_row) || (p_.a_column != 1 && spread > 256 << 10);
    direct_a_ = !converts && !(scattered && p_.k > 64 && p_.m > 4 && p_.n > 4 * P);
    const bool few_rows = p_.m <= 2 * tile_rows<T>;
    direct_b_ = !converts && p_.b_column == 1 && (few_rows || (p_.m <= 32 && !aliases<T>(p_.b_row)) || p_.k <= 64);
    // Few rows pass once over b, and a large second cache brings more runs as fast as they are used.
    length_ = run_length<T>(p_.k);
    const int64_t runs = (p_.k + length_ - 1) / length_,
                  most_runs = few_rows      ? (large_cache ? 4 : 3)
                              : by_panels   ? 6
                              : large_cache ? 2
                                            : 1,
                  steps = (runs + most_runs - 1) / most_runs,
                  step = (steps ? (runs + steps - 1) / steps : 1) * length_;
    rows_ = block_rows<T>(p_.m, p_.n);
    const auto fitting = [&](int64_t unit, int64_t size, int64_t bytes) {  // that many, of equal chunks
      const int64_t all = (size + unit - 1) / unit, one = unit * step * int64_t(sizeof(T)),
                    most = bytes / one > 0 ? bytes / one : 1, chunks = (all + most - 1) / most;
      return chunks ? (all + chunks - 1) / chunks * unit : unit;
    };
    most_rows_ = fitting(rows_, p_.m, chunk_bytes), most_columns_ = fitting(P, p_.n, panel_bytes);
    const bool packs = !p_.panels && (!direct_b_ || p_.n % P);
    const bool by_blocks = !by_panels && !direct_b_ && !p_.panels && !is_small();
    const size_t a_size = size_packed(step + padding, by_blocks ? rows_ : least(p_.m, most_rows_), int(rows_));
    a_ = static_cast<T*>(direct_a_ ? nullptr : scratch(Scratch::operand_a, a_size));
    b_ = static_cast<T*>(packs ? scratch(Scratch::operand_b, size_packed(step, direct_b_ ? P : most_columns_, P))
                               : nullptr);
    if ((!direct_a_ && !a_) || (packs && !b_)) return false;
    // Added last: each term of a sum that begins with a large bias would be rounded to the bias's digits.
    if (p_.bias && !bias_of_row_ && !widen_bias()) return false;
    if (!p_.k) clear();
    for (int64_t q = 0; q < p_.k; q += step) add_step(q, least(step, p_.k - q));
    if (p_.bias && bias_of_row_) add_to_rows();
    return true;
  }

 private:
  static size_t size_packed(int64_t k, int64_t n, int width) {
    return size_t(packed_size(k, n, width)) * sizeof(T);
  }

  // Whether all operands stay in the second cache.
  bool is_small() const {
    return p_.m <= most_rows_ && (p_.m * p_.n + p_.k * (p_.m + p_.n)) * int64_t(sizeof(T)) <= small_bytes;
  }

  void add_to_rows() {
    for (int64_t i = 0; i < p_.m; ++i) {
      const T bias = load(p_.bias[i]);
      for (int64_t j = 0; j < p_.n; ++j) p_.c[i * p_.c_row + j] += bias;
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
      for (int64_t j = 0; j < p_.n; ++j) p_.c[i * p_.c_row + j] = bias_ ? bias_[j] : T(0);
  }

  // Adds columns [q, q + k) of a times the same rows of b.
  void add_step(int64_t q, int64_t k) {
    const Target<T> c{p_.c, p_.c_row, q != 0, q + k == p_.k ? bias_ : nullptr};
    int64_t first = 0;  // column that is packed here
    if constexpr (std::is_floating_point_v<In>)
      if (p_.panels) return add_panels(q, k, p_.n, p_.panels + q * P, p_.k * P, c);
    if constexpr (!converts)
      if (direct_b_) first = p_.n / P * P, add_columns(q, k, first, c);
    for (int64_t j = first; j < p_.n; j += most_columns_) {
      const int64_t n = least(most_columns_, p_.n - j);
      pack_rows(k, n, p_.b + q * p_.b_row + j * p_.b_column, p_.b_row, p_.b_column, P, k * P, b_);
      if (is_small())
        multiply_blocks<T>(p_.m, n, k, rows_of_a(0, p_.m, q, k), Panels<T>{b_, k * P, P}, c.from(0, j), length_);
      else if constexpr (by_panels) add_panels(q, k, n, b_, k * P, c.from(0, j));
      else add_packed(q, k, n, c.from(0, j));
    }
  }

  // For the first n columns, which are in place: as many rows as stay in the second cache read each panel.
  void add_columns(int64_t q, int64_t k, int64_t n, const Target<T>& c) {
    for (int64_t i = 0; i < p_.m; i += most_rows_) {
      const int64_t m = least(most_rows_, p_.m - i);
      multiply_blocks<T>(m, n, k, rows_of_a(i, m, q, k), Panels<T>{p_.b + q * p_.b_row, P, p_.b_row}, c.from(i, 0),
                         length_);
    }
  }
  // The same for n columns in panels that are `stride` apart.
  void add_panels(int64_t q, int64_t k, int64_t n, const T* panels, int64_t stride, const Target<T>& c) {
    for (int64_t i = 0; i < p_.m; i += most_rows_) {
      const int64_t m = least(most_rows_, p_.m - i);
      const Blocks<T> a = rows_of_a(i, m, q, k);
      const T* panel = panels;
      for (int64_t j = 0; j < n;) {
        const int64_t count = rows_ <= pair_rows && is_pair<T>(n - j) ? 2 : 1;
        const T* const next = panel + count * stride;
        multiply_streamed(m, least<int64_t>(count * P, n - j), k, a, panel, stride,
                          j + count * P < n ? next : panel, j == 0, c.from(i, j));
        j += count * P, panel = next;
      }
    }
  }
  // A panel, or two, `stride` apart. They come from memory: each block of rows brings some lines of the next one.
  // Those that read the first one bring the next block instead, if its rows follow each other.
  void multiply_streamed(int64_t m, int64_t n, int64_t k, const Blocks<T>& a, const T* panel, int64_t stride,
                         const T* next, bool first, const Target<T>& c) {
    const int64_t blocks = (m + rows_ - 1) / rows_, size = k * P * int64_t(sizeof(T)), count = n > P ? 2 : 1;
    const bool brings_a = first && blocks > 4 && a.column == 1 && a.row == k;
    const int64_t bytes = brings_a ? rows_ * int64_t(sizeof(T)) : (count * size / k + blocks - 1) / blocks;
    const char* soon = reinterpret_cast<const char*>(brings_a ? a.data + a.block : next);
    for (int64_t i = 0, at = 0, past = 0; i < m; i += rows_, at += a.block, past += k * bytes) {
      const int64_t rows = least(rows_, m - i);
      const bool second = !brings_a && past >= size;  // of the next panels
      const Streamed<T> b{panel, P, soon + past + (second ? stride * int64_t(sizeof(T)) - size : 0), bytes};
      if constexpr (has_pairs<T>)
        if (count == 2) {
          tiles_of_pairs<T>[rows - 1](k, a.data + at, a.row, a.column, {b, stride}, c.from(i, 0), n, length_);
          continue;
        }
      multiply_tile(rows, n, k, a.data + at, a.row, a.column, b, c.from(i, 0), length_);
    }
  }

  // For n columns whose panels stay in the second cache: each block of rows reads them all, and brings the next
  // block and the next tile of c, row by row.
  void add_packed(int64_t q, int64_t k, int64_t n, const Target<T>& c) {
    for (int64_t i = 0; i < p_.m; i += rows_) {
      const int64_t m = least(rows_, p_.m - i);
      const In* const next = p_.a + q * p_.a_column + least(i + rows_, p_.m - 1) * p_.a_row;
      const Blocks<T> a = rows_of_a(i, m, q, k);
      for (int64_t j = 0, row = 0; j < n; j += P, ++row) {
        const int64_t columns = least<int64_t>(P, n - j);
        const Target<T> to = c.from(i, j);
        for (int64_t r = 0; c.add && j + P < n && r < m; ++r)
          __builtin_prefetch(to.at + r * to.row + P, 1), __builtin_prefetch(to.at + r * to.row + P + width<T>, 1);
        const bool brings = row < rows_ && i + rows_ < p_.m;
        const Streamed<T> rows{
            b_ + j * k, P,
            brings ? reinterpret_cast<const char*>(next + least(row, p_.m - 1 - i - rows_) * p_.a_row)
                   : reinterpret_cast<const char*>(a.data),
            brings ? p_.a_column * int64_t(sizeof(In)) : 0};
        multiply_tile(m, columns, k, a.data, a.row, a.column, rows, to, length_);
      }
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

  const Product<In, T>& p_;
  bool bias_of_row_, direct_a_ = false, direct_b_ = false;
  int64_t rows_ = 0;                          // of a block
  int64_t most_rows_ = 0, most_columns_ = 0;  // of a and b in the second cache
  int64_t length_ = 1;                        // of a run
  T *a_ = nullptr, *b_ = nullptr;
  const T* bias_ = nullptr;
};

// c[i][j] = sums[i * n + j]
template <class In, class Out>
void store_sums(const Product<In, Out>& p, const Accumulator<In>* sums) {
  using T = Accumulator<In>;
  if (p.c_row == 1) return transpose(p.m, p.n, sums, p.n, p.c, p.c_column, [](T x) { return store<Out>(x); });
  for (int64_t i = 0; i < p.m; ++i, sums += p.n) {
    Out* const to = p.c + i * p.c_row;
    if constexpr (is_half<Out>)
      if (p.c_column == 1) {
        narrow(sums, to, p.n);
        continue;
      }
    for (int64_t j = 0; j < p.n; ++j) to[j * p.c_column] = store<Out>(sums[j]);
  }
}
// multiply(p), or if it cannot store to c, which has another type or order, to memory of its own before.
template <class In, class Out, class F>
bool by_sums(const Product<In, Out>& p, F multiply) {
  using T = Accumulator<In>;
  if constexpr (std::is_same_v<Out, T>)
    if (p.c_column == 1) return multiply(p);
  T* const sums = static_cast<T*>(scratch(Scratch::result, size_t(p.m * p.n) * sizeof(T)));
  if (!sums || !multiply(Product<In, T>{p.m, p.n, p.k, p.a, p.a_row, p.a_column, p.b, p.b_row, p.b_column, sums,
                                        p.n, 1, p.bias, p.panels, p.all_m, p.all_n}))
    return false;
  return store_sums(p, sums), true;
}

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
    if (p.k <= 32 && p.all_m * p.all_n * p.k <= (p.b_column == 1 ? 1024 : 256)) return tiny(p), true;
  }
  if constexpr (std::is_floating_point_v<Accumulator<In>>)
    if (by_sums(p, few_rows<In>)) return true;
  const auto multiply = [](bool bias_of_row) {
    return [=](const Product<In, Accumulator<In>>& q) { return Job<In>(q, bias_of_row).run(); };
  };
  if (p.panels || !better_transposed(p)) return by_sums(p, multiply(false));
  const Product<In, Out> t{p.n,        p.m,     p.k, p.b,        p.b_column, p.b_row, p.a,
                           p.a_column, p.a_row, p.c, p.c_column, p.c_row,    p.bias};
  return by_sums(t, multiply(true));
}

#define DOVETAIL_MULTIPLY(T)                                                                                      \
  template void multiply<T>(int64_t, int64_t, int64_t, const T*, int64_t, int64_t, const Panels<T>&, T*, int64_t, \
                            bool);
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
