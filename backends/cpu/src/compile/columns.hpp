// Totals of columns: reductions over the rows of the index space, in the grouping of an eager reduction.
#pragma once
#include <algorithm>
#include <cstring>

#include "compile/space.hpp"

namespace dovetail::cpu {
// How rows and columns are divided: chunks of rows with partial results of their own, in parts of columns.
struct ColumnParts {
  int64_t rows = 0, columns = 0, chunks = 1, width = 0;

  int64_t parts() const { return (columns + width - 1) / width; }
  int64_t first_row(int64_t chunk) const { return rows * chunk / chunks; }
  // Halves of a chunk's rows, and of those, that have to be kept at a time.
  int slots() const {
    int n = 1;
    for (int64_t m = rows / chunks + 1; m > Reduction::Columns::rows_of_run; m = (m + 1) / 2) ++n;
    return n;
  }
};

inline ColumnParts column_parts(const Group& g, int64_t rows, int64_t columns) {
  constexpr int64_t part = 512;
  return {rows, columns, g.totals[0].reduction->columns.chunks(columns, rows),
          columns <= tile_elements ? columns : part};
}

// Why totals have not the grouping of eager calls, which join the terms of inputs in the order of memory; nullptr:
// they have.
inline const char* refuses_totals(const Group& g, const dvt_exe_call& c) {
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < g.space.size(); ++axis) rows *= size_of(g, c, axis);
  const int64_t columns = size_of(g, c, g.space.size() - 1);
  if (rows == 0 || columns <= 1) return "totals of less than two columns, or of no rows";
  for (const Instruction& step : g.totals) {
    const Operand& x = g.values[step.in[0]];
    if (!g.as_eager || x.source != dvt::codegen::Value::input) continue;
    const DLTensor& t = *c.call->in[x.index];
    int64_t stride = columns;
    for (int axis = t.ndim - 1; axis-- > 0;) {
      if (t.shape[axis] != 1 && t.strides[axis] != stride) return "totals of columns of a strided input";
      stride *= t.shape[axis];
    }
    if (t.strides[t.ndim - 1] != 1) return "totals of columns of a strided input";
  }
  return nullptr;
}

// The totals of one thread, of one part of the columns at a time.
class Totals {
 public:
  Totals(const Group& g, const ColumnParts& p) : group_(g), width_(p.width), slots_(p.slots()) {}

  size_t bytes() const { return group_.totals.size() * bytes_of_one(); }
  void use(char* memory) { memory_ = memory; }

  // make(row, n) makes n rows and calls add. The result is then in slot 0.
  template <class Make>
  void run(int64_t row, int64_t n, int64_t begin, int64_t end, Make make, int slot = 0) {
    if (n > Reduction::Columns::rows_of_run) {
      const int64_t half = (n + 1) / 2;
      run(row, half, begin, end, make, slot);
      run(row + half, n - half, begin, end, make, slot + 1);
      for (const Instruction& t : group_.totals)
        t.reduction->columns.join(in_slot(t, slot), in_slot(t, slot + 1), end - begin);
      return;
    }
    first_row_ = row, first_column_ = begin;
    for (const Instruction& t : group_.totals)
      for (int c = 0; c < chains(t); ++c) t.reduction->columns.clear(chain(t, c), end - begin);
    make(row, n);
    for (const Instruction& t : group_.totals) {
      for (int step = 1; step < chains(t); step *= 2)
        for (int c = 0; c < chains(t); c += 2 * step)
          t.reduction->columns.join(chain(t, c), chain(t, c + step), end - begin);
      std::memcpy(in_slot(t, slot), chain(t, 0), size_t(end - begin) * t.reduction->columns.bytes);
    }
  }
  // Dense rows of n terms, from `row` and `column` on.
  void add(const Instruction& t, int64_t row, int64_t column, const char* x, int64_t rows, int64_t n) {
    const Reduction::Columns& loops = t.reduction->columns;
    loops.add(chain(t, 0) + size_t(column - first_column_) * loops.bytes, chains(t), width_, x, row - first_row_,
              rows, n);
  }
  char* in_slot(const Instruction& t, int slot) const {
    return memory_ + t.state * bytes_of_one() + size_t(slot * width_) * t.reduction->columns.bytes;
  }

 private:
  static constexpr int most_chains = 4;
  size_t bytes_of_one() const { return size_t((slots_ + most_chains) * width_ + 7) / 8 * 64; }
  int chains(const Instruction& t) const {
    return group_.values[t.in[0]].half == Half::no ? t.reduction->columns.chains : 1;
  }
  char* chain(const Instruction& t, int c) const { return in_slot(t, slots_ + c); }

  const Group& group_;
  const int64_t width_;
  const int slots_;
  char* memory_ = nullptr;
  int64_t first_row_ = 0, first_column_ = 0;
};
}  // namespace dovetail::cpu
