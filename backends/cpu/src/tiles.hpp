// A batch of products of matrices, and how each is cut into tiles for the host's pool.
#pragma once
#include "dovetail/product.hpp"
#include "kernel.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
// dvt::Product with signed sizes, for loops that count down and comparisons with strides. c is dense.
struct Batched {
  int64_t m, n, k, a_row, a_column, b_row, b_column, matrices;
  dvt::Product axes;  // of the batch

  explicit Batched(const dvt::Product& p)
      : m(int64_t(p.m)),
        n(int64_t(p.n)),
        k(int64_t(p.k)),
        a_row(p.a_row || m > 1 ? p.a_row : k),  // BLAS also requires a valid stride for a vector
        a_column(p.a_column),
        b_row(p.b_row),
        b_column(p.b_column || n > 1 ? p.b_column : 1),
        matrices(int64_t(p.matrices)),
        axes(p) {}

  void offsets(int64_t matrix, int64_t& a, int64_t& b) const {
    a = b = 0;
    for (uint32_t i = axes.axes; i-- > 0; matrix /= axes.batch[i]) {
      const int64_t at = matrix % axes.batch[i];
      a += at * axes.a_batch[i], b += at * axes.b_batch[i];
    }
  }

  // Matrices of few rows that share b, too few to reuse what is read of it: a copy of their rows is one matrix.
  bool share_b_in_few_rows() const {
    constexpr int64_t few = 32, most_copied = 1 << 20;  // rows of a matrix; elements in all
    bool shared = matrices > 1 && m <= few && n > 1 && k > 0 && matrices * m <= most_copied / k;
    for (uint32_t i = 0; i < axes.axes; ++i) shared = shared && !axes.b_batch[i];
    return shared;
  }
  template <class T>
  void copy_rows(const T* a, T* to) const {
    for (int64_t matrix = 0; matrix < matrices; ++matrix) {
      int64_t offset, of_b;
      offsets(matrix, offset, of_b);
      for (int64_t i = 0; i < m; ++i, to += k) {
        const T* const row = a + offset + i * a_row;
        for (int64_t q = 0; q < k; ++q) to[q] = row[q * a_column];
      }
    }
  }
  // Of such a copy.
  void join_rows() { m *= matrices, matrices = 1, a_row = k, a_column = 1, axes.axes = 0; }
};

// The tiles of one matrix.
struct Cut {
  int64_t rows, columns;  // of a tile
  int64_t across, tiles;  // tiles side by side, and in all
};
// Of the divisions like this one, that whose last thread is done first: 8 tiles take two threads less time than 9.
void even_out(const Batched& p, int64_t row_step, int64_t column_step, int64_t threads, int64_t wanted, Cut& c) {
  constexpr int64_t most = 1024, overhead = 16;  // a tile's side; of a row or column, in multiply-adds per k
  const int64_t down = divide_up(p.m, c.rows), across = divide_up(p.n, c.columns);
  const auto part = [](int64_t total, int64_t parts, int64_t step) {
    return parts == 1 ? total : divide_up(divide_up(total, parts), step) * step;
  };
  int64_t least_time = 0;
  for (int64_t i = down > 2 ? down - 2 : 1; i <= down + 2; ++i)
    for (int64_t j = across > 2 ? across - 2 : 1; j <= across + 2; ++j) {
      const int64_t rows = part(p.m, i, row_step), columns = part(p.n, j, column_step);
      if (rows > most || columns > most || divide_up(p.m, rows) != i || divide_up(p.n, columns) != j) continue;
      const int64_t count = p.matrices * i * j,
                    time = divide_up(count, threads) * (rows * columns + overhead * (rows + columns));
      if (count >= wanted && (!least_time || time < least_time))
        least_time = time, c.rows = rows, c.columns = columns;
    }
}

// fixed: the same tiles whatever the number of threads, for a library that sums those at an end in another order.
Cut cut(const Batched& p, int64_t row_step, int64_t column_step, bool fixed = false) {
  constexpr int64_t worthwhile = 150'000;  // multiply-adds worth waking a thread
  const double work = double(p.m) * double(p.n) * double(p.k) * double(p.matrices);
  const auto grown = [&](double unit, int64_t limit) {
    return work < unit * double(limit) ? int64_t(work / unit) : limit;
  };
  const int64_t threads =
      fixed ? 1 + grown(0x1p20, 3) + grown(0x1p28, 12) : int64_t(dvt::host->num_threads(dvt::host));
  const double most = work / worthwhile;
  // Some more than threads, for those that are held up; few rows read b in long pieces.
  const int64_t many = p.m <= 4 ? 2 * threads : 4 * threads;
  const int64_t wanted = threads == 1 || most < 2 ? 1 : most < double(8 * threads) ? threads : many;
  Cut c{p.m, p.n, 1, p.matrices};
  const auto count = [&] { return p.matrices * (divide_up(p.m, c.rows) * divide_up(p.n, c.columns)); };
  // The bounds keep a tile's scratch memory small; for few rows, what is read at once is long.
  const int64_t most_columns = p.m <= 4 ? 4096 : 1024;
  while (count() < wanted || c.rows > 1024 || c.columns > most_columns) {
    const bool by_rows = c.rows > c.columns || (c.columns <= column_step && c.rows > row_step);
    int64_t& side = by_rows ? c.rows : c.columns;
    const int64_t step = by_rows ? row_step : column_step, total = by_rows ? p.m : p.n;
    if (side <= step) break;
    const int64_t before = side;
    for (int64_t chunks = divide_up(total, side) + 1; side >= before; ++chunks)
      side = divide_up(divide_up(total, chunks), step) * step;
  }
  if (!fixed && wanted > 1 && p.m > 4) even_out(p, row_step, column_step, threads, wanted, c);
  c.across = divide_up(p.n, c.columns);
  c.tiles = c.across * divide_up(p.m, c.rows);
  return c;
}
}  // namespace
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
