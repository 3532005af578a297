// Reductions for the compiler's programs, over tiles of rows or of columns, with the grouping of the kernels.
#pragma once
#include "simd/reduce.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::reduction {
enum class Finish { none, mean, truth };

// `finish`: what totals become. L converts terms from In.
template <class In, class Op, Finish finish, class L>
struct RowReduction {
  using T = typename Op::Type;
  using State = Pairs<Op, T>;
  static_assert(sizeof(State) <= Reduction::state_bytes);

  static T run(const In* x, int64_t n) {
    T buffer[run_length];
    return combine_run<Op>(Loops<In, Op, L>::fetch(x, 1, n, buffer), n);
  }
  static T finished(T x, int64_t terms) {
    if constexpr (finish == Finish::mean) return terms ? x / T(terms) : T(__builtin_nanf(""));
    else if constexpr (finish == Finish::truth) return x != 0;
    else return x;
  }
  static void rows(const void* x, int64_t rows, int64_t n, void* out) {
    const In* const terms = static_cast<const In*>(x);
    T* const results = static_cast<T*>(out);
    int64_t r = 0;
    if constexpr (constexpr int at_once = rows_at_once<T>; std::is_same_v<In, T> && at_once > 1)
      for (; is_short_row<T>(n) && r + at_once <= rows; r += at_once)
        combine_rows<Op>(terms + r * n, n, n, results + r);
    for (; r < rows; ++r) results[r] = run(terms + r * n, n);
    for (r = 0; r < rows; ++r) results[r] = finished(results[r], n);
  }
  static void start(void* state) { *static_cast<State*>(state) = State(); }
  static void add(void* state, const void* x, int64_t n) {
    static_cast<State*>(state)->add(run(static_cast<const In*>(x), n));
  }
  static void join(void* state, const void* x) { static_cast<State*>(state)->add(*static_cast<const T*>(x)); }
  static void partial(void* state, void* out) { *static_cast<T*>(out) = static_cast<State*>(state)->total(); }
  static void total(void* state, int64_t terms, void* out) {
    *static_cast<T*>(out) = finished(static_cast<State*>(state)->total(), terms);
  }
};
template <class In, class Op, Finish finish, class L>
struct ColumnReduction {
  using T = typename Op::Type;

  static void clear(void* partials, int64_t n) {
    for (int64_t j = 0; j < n; ++j) static_cast<T*>(partials)[j] = Op::identity;
  }
  static void add(void* partials, int64_t chains, int64_t width, const void* from, int64_t first, int64_t rows,
                  int64_t n) {
    const In* const x = static_cast<const In*>(from);
    for (int64_t c = 0; c < chains && c < rows; ++c) {
      T* const to = static_cast<T*>(partials) + (first + c) % chains * width;
      int64_t j = 0;
      if constexpr (std::is_same_v<In, T>) {
        constexpr int64_t W = V<T>::size();
        for (; j + W <= n; j += W) {
          V<T> acc(to + j, stdx::element_aligned);
          for (int64_t i = c; i < rows; i += chains)
            acc = Op::combine(acc, V<T>(x + i * n + j, stdx::element_aligned));
          acc.copy_to(to + j, stdx::element_aligned);
        }
      }
      for (int64_t i = c; i < rows; i += chains)
        for (int64_t k = j; k < n; ++k) to[k] = Op::combine(to[k], L::one(x[i * n + k]));
    }
  }
  static void join(void* left, const void* right, int64_t n) {
    combine_columns<Op>(static_cast<T*>(left), static_cast<const T*>(right), n);
  }
  static int64_t chunks(int64_t n, int64_t terms) {
    return chunks_of(n, (n + column_block - 1) / column_block, terms, terms);
  }
  static void total(const void* partials, int64_t chunks, int64_t columns, int64_t begin, int64_t n, int64_t terms,
                    void* out) {
    const T* const from = static_cast<const T*>(partials) + begin;
    for (int64_t j = 0; j < n; ++j) {
      Pairs<Op, T> pairs;
      for (int64_t chunk = 0; chunk < chunks; ++chunk) pairs.add(from[chunk * columns + j]);
      static_cast<T*>(out)[j] = RowReduction<In, Op, finish, L>::finished(pairs.total(), terms);
    }
  }
};
template <class In, class Op, Finish finish, class L, class Row = RowReduction<In, Op, finish, L>,
          class Column = ColumnReduction<In, Op, finish, L>>
inline constexpr Reduction reduction_row{Row::rows,
                                         Row::start,
                                         Row::add,
                                         Row::join,
                                         Row::partial,
                                         Row::total,
                                         {sizeof(typename Op::Type), std::is_same_v<In, typename Op::Type> ? 4 : 1,
                                          Column::clear, Column::add, Column::join, Column::chunks, Column::total}};

// `type`: of terms that are In in a tile.
template <class In, class Op, Finish finish = Finish::none, class L = Load<In, typename Op::Type>>
void add_row_reduction(Table& table, const char* op, DLDataType type, DLDataType out) {
  table.add_loop({op, nullptr, &reduction_row<In, Op, finish, L>, {type}, out});
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::reduction
