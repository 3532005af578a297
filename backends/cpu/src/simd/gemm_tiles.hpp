// The register tiles of a product, and the loops over them. For the sources of each kind of b.
#pragma once
#include "simd/gemm.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm {
namespace {
template <class T>
DOVETAIL_CPU_INLINE constexpr T least(T a, T b) {
  return a < b ? a : b;
}

// Compiled once for all tiles of a type.
template <class T>
[[gnu::noinline]] void copy_rows(int64_t rows, int64_t columns, const T* from, int64_t from_row, T* to,
                                 int64_t to_row) {
  for (int64_t r = 0; r < rows; ++r, from += from_row, to += to_row) {
    if (columns % width<T>) std::memcpy(to, from, size_t(columns) * sizeof(T));
    else
      for (int64_t j = 0; j < columns; j += width<T>) store_vector(load_vector(from + j), to + j);
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
// And with each a line of what is read next is brought into the caches.
template <class T>
struct Streamed {
  const T* at;
  int64_t step;
  const char* soon;
  int64_t bytes;
  DOVETAIL_CPU_INLINE const T* next() {
    const T* const row = at;
    at += step;
    __builtin_prefetch(soon);
    soon += bytes;
    return row;
  }
};
// The same of two panels, `apart` from each other.
template <class T>
struct Paired : Streamed<T> {
  int64_t apart;
};
template <class T>
struct Listed {
  const T* data;
  const int64_t* offset;
  DOVETAIL_CPU_INLINE const T* next() { return data + *offset++; }
};

// Where vector j of the row at `from` is.
template <class T, class B>
DOVETAIL_CPU_INLINE const T* vector_at(const B&, const T* from, int j) {
  return from + j * width<T>;
}
template <class T>
DOVETAIL_CPU_INLINE const T* vector_at(const Paired<T>& b, const T* from, int j) {
  return from + j / 2 * b.apart + j % 2 * width<T>;
}

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

template <class T, int Rows, int Columns>
DOVETAIL_CPU_INLINE void add_to_sums(V<T> (&sum)[Rows][Columns], const T* at, int64_t row) {
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r, at += row) {
    __asm__("" : "+r"(at));  // for the addresses of all rows there are no registers
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) sum[r][j] += load_vector(at + j * width<T>);
  }
}

// Of the sums: a loop's own instructions take time from products where two threads share a core.
#if defined(__AVX512F__)
constexpr int terms_at_once = 2;
#else
constexpr int terms_at_once = 4;
#endif

// Rows x Columns vectors of c in registers. They go through a buffer if only some of the columns are stored,
// or if the rows of c map to the same cache lines.
template <class T, int Rows, int Columns, class B>
[[gnu::noinline]] void tile(int64_t k, const T* a, int64_t a_row, int64_t a_column, const B& rows,
                            const Target<T>& c, int64_t columns, int64_t length) {
  constexpr int W = width<T>;
  B b = rows;
  T buffer[Rows][Columns * W];
  const bool in_place = columns == Columns * W && (k <= length || c.row * int64_t(sizeof(T)) % 1024);
  if (!in_place) {
    std::memset(buffer, 0, sizeof buffer);
    if (c.add) copy_rows(Rows, columns, c.at, c.row, &buffer[0][0], Columns * W);
  }
  T* const to = in_place ? c.at : &buffer[0][0];
  const int64_t to_row = in_place ? c.row : Columns * W;
  bool add = c.add || !in_place;
  if (k > 96) {  // its lines arrive while the sums are made
    const T* at = c.at;
#pragma GCC unroll 1
    for (int r = 0; r < Rows; ++r, at += c.row) {
#pragma GCC unroll 8
      for (int j = 0; j < Columns; ++j) __builtin_prefetch(at + j * W, 1);
    }
  }
  do {
    V<T> sum[Rows][Columns] = {};
    const int64_t run = least(k, length);
#pragma GCC unroll terms_at_once
    for (int64_t p = 0; p < run; ++p, a += a_column) {
      const T* const from = b.next();
      V<T> row[Columns];
#pragma GCC unroll 8
      for (int j = 0; j < Columns; ++j) row[j] = load_vector(vector_at(b, from, j));
      const T* four = a;  // rows: for 14 addresses, or distances, there are no registers
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        if (r && r % 4 == 0) {
          four += 4 * a_row;
          __asm__("" : "+r"(four));
        }
        const T x = four[r % 4 * a_row];
#pragma GCC unroll 8
        for (int j = 0; j < Columns; ++j) sum[r][j] += x * row[j];
      }
    }
    // One term after the other, for all sums: a test for each of them takes as long as the terms.
    if (add) add_to_sums(sum, to, to_row);
    if (k == run && c.bias) add_to_sums(sum, c.bias, 0);
    if (k == run && c.bias_of_rows)
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
        for (int j = 0; j < Columns; ++j) sum[r][j] += c.bias_of_rows[r];
    T* at = to;
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r, at += to_row) {
      __asm__("" : "+r"(at));
#pragma GCC unroll 8
      for (int j = 0; j < Columns; ++j) store_vector(sum[r][j], at + j * W);
    }
    add = true;
    k -= run;
  } while (k);
  if (!in_place) copy_rows<T>(Rows, columns, &buffer[0][0], Columns * W, c.at, c.row);
}

template <class T, class B>
using Tile = void (*)(int64_t, const T*, int64_t, int64_t, const B&, const Target<T>&, int64_t, int64_t);
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
// Those of two panels.
template <class T, class B = Paired<T>>
inline constexpr Tile<T, B> tiles_of_pairs[pair_rows] = {
    tile<T, 1, 4, B>, tile<T, 2, 4, B>, tile<T, 3, 4, B>, tile<T, 4, 4, B>, tile<T, 5, 4, B>, tile<T, 6, 4, B>,
};
// Whether so many columns fill their vectors: none beyond the last one is read.
template <class T>
DOVETAIL_CPU_INLINE bool is_pair(int64_t columns) {
  return has_pairs<T> && columns > 2 * panel<T> - width<T>;
}
// Calls the tile of so many rows and columns. Integers, which models multiply rarely, have none of one vector for
// panels, which are padded, and no product of one vector brings what is read next: less to compile.
template <class T, class B>
DOVETAIL_CPU_INLINE void multiply_tile(int64_t rows, int64_t columns, int64_t k, const T* a, int64_t a_row,
                                       int64_t a_column, const B& b, const Target<T>& c, int64_t length) {
  constexpr bool streams = std::is_same_v<B, Streamed<T>>, real = std::is_floating_point_v<T>,
                 padded = std::is_same_v<B, Stepped<T>>;
  if constexpr (streams)
    if (!real || columns <= width<T>)
      return multiply_tile(rows, columns, k, a, a_row, a_column, Stepped<T>{b.at, b.step}, c, length);
  if constexpr (!streams && (real || !padded))
    if (columns <= width<T>) return tiles_of<T, B, 1>[rows - 1](k, a, a_row, a_column, b, c, columns, length);
  if constexpr (real || !streams) tiles_of<T, B, 2>[rows - 1](k, a, a_row, a_column, b, c, columns, length);
}

// Rows of equal blocks for n columns in panels, none smaller than needed: 16 rows are 8 + 8, not 14 + 2, nor 6 + 6
// + 4, which would pass over b once more.
template <class T>
DOVETAIL_CPU_INLINE int64_t block_rows(int64_t m, int64_t n = 0) {
  const bool by_pairs = is_pair<T>(n) && (m <= pair_rows || m > 2 * tile_rows<T>);
  const int64_t most = by_pairs ? pair_rows : tile_rows<T>, blocks = (m + most - 1) / most;
  return (m + blocks - 1) / blocks;
}

// A in the order in which `multiply` reads it: blocks of `rows` rows, `block` apart.
template <class T>
struct Blocks {
  const T* data;
  int64_t rows, block, row, column;
};

// The rows of the panel at column j.
template <class T>
DOVETAIL_CPU_INLINE Stepped<T> rows_of(const Panels<T>& b, int64_t j) {
  return {b.data + j / panel<T> * b.stride, b.row};
}
template <class T>
DOVETAIL_CPU_INLINE Listed<T> rows_of(const Shifted<T>& b, int64_t j) {
  return {b.data + j, b.offset};
}
template <class T>
DOVETAIL_CPU_INLINE Paired<T> pair_of(const Panels<T>& b, int64_t j) {
  const T* const at = b.data + j / panel<T> * b.stride;
  return {{at, b.row, reinterpret_cast<const char*>(at), 0}, b.stride};
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
    tile<T, Rows, Columns>(k, a.data, a.row, a.column, rows_of(b, j), c.from(0, j), step, length);
  return j;
}

template <class T, class B>
void multiply_blocks(int64_t m, int64_t n, int64_t k, const Blocks<T>& a, const B& b, const Target<T>& c,
                     int64_t length) {
  constexpr int P = panel<T>, Wide = sizeof(V<T>) == 64 ? 8 : 4;
  int64_t j = 0;
  if constexpr (std::is_floating_point_v<T>)
    if (m <= 2 && is_wide(b)) {
      j = m == 1 ? multiply_wide<1, Wide>(0, n, k, a, b, c, length)
                 : multiply_wide<2, Wide == 8 ? 6 : 4>(0, n, k, a, b, c, length);
      j = m == 1 ? multiply_wide<1, 4>(j, n, k, a, b, c, length) : multiply_wide<2, 4>(j, n, k, a, b, c, length);
    }
  if constexpr (has_pairs<T> && std::is_same_v<B, Panels<T>>)
    for (; a.rows <= pair_rows && is_pair<T>(n - j); j += 2 * P) {
      const int64_t columns = least<int64_t>(2 * P, n - j);
      for (int64_t i = 0, block = 0; i < m; i += a.rows, ++block)
        tiles_of_pairs<T>[least(a.rows, m - i) - 1](k, a.data + block* a.block, a.row, a.column, pair_of(b, j),
                                                    c.from(i, j), columns, length);
    }
  for (; j < n; j += P) {
    const int64_t columns = least<int64_t>(P, n - j);
    for (int64_t i = 0, block = 0; i < m; i += a.rows, ++block)
      multiply_tile(least(a.rows, m - i), columns, k, a.data + block * a.block, a.row, a.column, rows_of(b, j),
                    c.from(i, j), length);
  }
}
}  // namespace
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::gemm
