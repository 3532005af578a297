// One thread's work on a group's tiles.
#pragma once
#include <algorithm>
#include <cstring>
#include <utility>

#include "compile/columns.hpp"
#include "compile/space.hpp"
#include "dovetail/backend.hpp"
#include "scratch.hpp"

namespace dovetail::cpu {
constexpr int64_t shortest_row = 32;  // worth a call of a loop of its own

// A group with the operands of one run.
struct Call {
  Call(const Group& g, const Conversions& c, const GeneratedFunction* f)
      : group(g), schedule(f ? g.joined : g.plain), conversions(c), functions(f) {}

  const Group& group;
  const Schedule& schedule;
  const Conversions& conversions;
  const GeneratedFunction* functions;
  Space space;
  ColumnParts parts;  // of a group with totals
  size_t n_inputs = 0;
  Memory memory[2 * most_in_memory + most_values];  // of inputs' values, then of outputs
  uint32_t input_of[most_values];                   // of each value its entry in `memory`
  uint64_t one[most_values];                        // values of one element

  const Memory& output(size_t i) const { return memory[n_inputs + i]; }
};

// Values of one element: constants, inputs, and what follows from them. `inputs`: which of the call's inputs each
// of the group's is, if they are not the same.
void set_ones(Call&, const dvt_exe_call&, const uint32_t* inputs = nullptr);
// How many rows of so many columns, at most tile_elements, a tile has.
int64_t rows_of_tile(const Group&, int64_t columns);

template <class F>
void for_type_of(int bytes, F f) {
  if (bytes == 1) f(uint8_t());
  else if (bytes == 2) f(uint16_t());
  else if (bytes == 4) f(uint32_t());
  else f(uint64_t());
}
inline void copy_elements(const char* from, int64_t step, char* to, int64_t n, int bytes) {
  if (step == 1) return void(std::memcpy(to, from, size_t(n * bytes)));
  for_type_of(bytes, [&](auto zero) {
    using T = decltype(zero);
    const T* in = reinterpret_cast<const T*>(from);
    T* out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) out[i] = in[i * step];
  });
}
inline void fill(const void* value, char* to, int64_t n, int bytes) {
  for_type_of(bytes, [&](auto x) {
    std::memcpy(&x, value, sizeof x);
    std::fill_n(reinterpret_cast<decltype(x)*>(to), n, x);
  });
}

// One thread's work on its rows.
class Worker {
 public:
  explicit Worker(const Call& c) : call_(c), group_(c.group), space_(c.space), totals_(c.group, c.parts) {}

  bool start() {
    const size_t tile = size_t(tile_elements) * group_.widest;
    const size_t row = size_t(tile_elements) * 8, kept = size_t((space_.columns + 7) & ~7) * group_.widest;
    const bool wide = space_.columns > tile_elements;
    const size_t bytes = tile * (group_.n_registers + max_elementwise_in + 1) + row * group_.n_rows +
                         Reduction::state_bytes * group_.n_reductions + (wide ? kept * group_.n_kept : 0) +
                         totals_.bytes();
    char* at = static_cast<char*>(scratch(Scratch::group, bytes));
    if (!at) return false;
    const auto take = [&](size_t n) { return std::exchange(at, at + n); };
    registers_ = take(tile * group_.n_registers);
    spread_ = take(tile * max_elementwise_in);
    raw_ = take(tile);
    rows_ = take(row * group_.n_rows);
    states_ = take(Reduction::state_bytes * group_.n_reductions);
    totals_.use(take(totals_.bytes()));
    kept_ = at;
    for (size_t v = 0; v < group_.values.size(); ++v) {
      const Operand& x = group_.values[v];
      if (x.extent == Extent::one) at_[v] = reinterpret_cast<char*>(const_cast<uint64_t*>(&call_.one[v]));
      if (x.extent == Extent::rows) at_[v] = rows_ + x.row * row;
    }
    return true;
  }

  // Blocks of whole rows: n of them from `row` on.
  void run_block(int64_t row, int64_t n) {
    row_ = row, n_rows_ = n, column_ = 0, n_ = n * space_.columns;
    load_rows();
    const Pass& whole = call_.schedule.whole;
    point(whole);
    for (const Instruction& step : whole.body) run(step);
    store_rows();
    store_tile();
  }

  // A part of a chunk's rows. The partial results follow each other in `to`, one place for each total of the group.
  void run_columns(int64_t chunk, int64_t part, char* const* to) {
    const ColumnParts& p = call_.parts;
    const int64_t row = p.first_row(chunk), begin = part * p.width, end = std::min(begin + p.width, p.columns);
    const int64_t block = std::max<int64_t>(tile_elements / p.columns, 1);  // rows in a tile
    totals_.run(row, p.first_row(chunk + 1) - row, begin, end, [&](int64_t first, int64_t n) {
      for (int64_t i = 0; i < n; i += block)
        if (whole()) run_block(first + i, std::min(block, n - i));
        else run_row(first + i, begin, end);
    });
    for (const Instruction& t : group_.totals) {
      const size_t bytes = t.reduction->columns.bytes;
      std::memcpy(to[t.state] + size_t(chunk * p.columns + begin) * bytes, totals_.in_slot(t, 0),
                  size_t(end - begin) * bytes);
    }
  }
  // The totals of all rows, from those partial results.
  void store_totals(char* const* from) {
    const ColumnParts& p = call_.parts;
    for (size_t i = 0; i < group_.outputs.size(); ++i)
      for (const Instruction& t : group_.totals) {
        if (t.result != group_.outputs[i]) continue;
        const Memory& m = call_.output(i);
        for (int64_t begin = 0; begin < p.columns; begin += tile_elements) {
          const int64_t n = std::min(tile_elements, p.columns - begin);
          t.reduction->columns.total(from[t.state], p.chunks, p.columns, begin, n, p.rows, spread_);
          store(value(t.result).half, value(t.result).bytes, spread_, m.data + begin * m.step * m.bytes, m.step, n);
        }
      }
  }

  // One row, or of a group without reductions its columns from `begin` to `end`.
  void run_row(int64_t row, int64_t begin, int64_t end) {
    row_ = row, n_rows_ = 1;
    load_rows();
    for (const Pass& pass : call_.schedule.passes) {
      for (const Instruction& step : pass.before) run(step);
      start_reductions(pass);
      for (column_ = begin; column_ < end; column_ += tile_elements) {
        n_ = std::min(tile_elements, end - column_);
        point(pass);
        for (const Instruction& step : pass.body) run(step);
        store_tile_of(pass);
      }
      finish_reductions(pass);
    }
    store_rows();
  }

 private:
  const Operand& value(uint32_t v) const { return group_.values[v]; }
  bool whole() const { return space_.columns <= tile_elements; }
  // What is between memory and the tile of a value in this pass, and the bytes of an element of the tile.
  Half converts(uint32_t v) const { return pass_->is_half[v] ? Half::no : value(v).half; }
  int bytes_of(uint32_t v) const { return pass_->is_half[v] ? 2 : value(v).bytes; }

  // Where the values of a tile are, but for inputs in place.
  void point(const Pass& pass) {
    const size_t tile = size_t(tile_elements) * group_.widest;
    pass_ = &pass;
    n_ahead_ = 0, n_left_ = pass.n_long;
    for (const uint32_t v : pass.made) {
      const Operand& x = group_.values[v];
      if (pass.place[v] != nowhere) at_[v] = registers_ + pass.place[v] * tile;
      else if (x.kept != nowhere)
        at_[v] = kept_ + (size_t(x.kept) * size_t((space_.columns + 7) & ~7) + size_t(column_)) * group_.widest;
    }
    for (size_t i = 0; i < group_.outputs.size(); ++i) {
      const Operand& x = value(group_.outputs[i]);
      const Memory& m = call_.output(i);
      if (x.extent != Extent::all || pass.place[group_.outputs[i]] == nowhere || !space_.is_run(m, n_rows_))
        continue;
      char* const to = m.data + (space_.offset(m, row_) + column_) * m.bytes;
      if (m.is_far) ahead_[n_ahead_++] = {to + n_ * m.bytes, to + 2 * n_ * m.bytes, true};
      if (converts(group_.outputs[i]) == Half::no) at_[group_.outputs[i]] = to;  // straight to memory
    }
  }
  // Processors fetch ahead within a page, and tiles tend to be pages: memory would idle while a tile is computed,
  // and a processor wait for it at the next. So a part of the next tile's memory is asked for before each
  // instruction. One loop that does all of a pass is as good as a loop over all tiles: asked for at once, their
  // memory would only make it wait.
  void fetch_ahead() {
    constexpr int64_t line = 64;
    for (size_t i = 0; i < n_ahead_; ++i) {
      Ahead& a = ahead_[i];
      const char* const end = a.at + (a.end - a.at) / n_left_;
      for (; a.at < end; a.at += line)
        if (a.writes) __builtin_prefetch(a.at, 1, 2);
        else __builtin_prefetch(a.at, 0, 2);
    }
    --n_left_;
  }

  void widen(Half half, const char* from, char* to, int64_t n) const {
    (half == Half::f16 ? call_.conversions.widen_f16 : call_.conversions.widen_bf16)(
        from, reinterpret_cast<float*>(to), n);
  }
  void narrow(Half half, const char* from, char* to, int64_t n) const {
    (half == Half::f16 ? call_.conversions.narrow_f16 : call_.conversions.narrow_bf16)(
        reinterpret_cast<const float*>(from), to, n);
  }
  // n elements of memory to a tile.
  void fetch(Half half, int bytes, const char* from, int64_t step, char* to, int64_t n) {
    if (half == Half::no) return copy_elements(from, step, to, n, bytes);
    if (step != 1) copy_elements(from, step, raw_, n, 2), from = raw_;
    widen(half, from, to, n);
  }

  void load(uint32_t v) {
    const Half half = converts(v);
    const int bytes = bytes_of(v);
    const Memory& m = call_.memory[call_.input_of[v]];
    if (space_.is_run(m, n_rows_)) {
      char* const from = m.data + (space_.offset(m, row_) + column_) * m.bytes;
      if (m.is_far) ahead_[n_ahead_++] = {from + n_ * m.bytes, from + 2 * n_ * m.bytes, false};
      if (half == Half::no) at_[v] = from;
      else widen(half, from, at_[v], n_);
      return;
    }
    const int64_t n = n_ / n_rows_;
    space_.for_rows(m, row_, n_rows_, [&](int64_t i, int64_t offset) {
      fetch(half, bytes, m.data + (offset + column_ * m.step) * m.bytes, m.step, at_[v] + i * n * bytes, n);
    });
  }

  void load_rows() {
    for (const uint32_t v : group_.row_inputs) {
      const Operand& x = group_.values[v];
      const Memory& m = call_.memory[call_.input_of[v]];
      space_.for_rows(m, row_, n_rows_, [&](int64_t i, int64_t offset) {
        fetch(x.half, x.bytes, m.data + offset * m.bytes, 1, at_[v] + i * x.bytes, 1);
      });
    }
  }

  void run(const Instruction& step) {
    if (step.kind == Instruction::load) return load(step.result);
    if (is_long(group_, step) && pass_->n_long > 1) fetch_ahead();
    if (step.kind == Instruction::reduce) return reduce(step);
    if (step.kind == Instruction::reduce_columns) return add_to_totals(step);
    if (step.kind == Instruction::generated) return run_generated(step.result);
    const Operand& result = value(step.result);
    const int64_t n = result.extent == Extent::all ? n_ : result.extent == Extent::rows ? n_rows_ : 1;
    const void* in[max_elementwise_in];
    int64_t steps[max_elementwise_in];
    bool any = false;
    if (result.extent == Extent::all && n_rows_ > 1 && space_.columns >= shortest_row && takes_rows(step))
      return run_rows(step);
    for (uint32_t k = 0; k < step.n_in; ++k) {
      const Operand& x = value(step.in[k]);
      in[k] = at_[step.in[k]];
      steps[k] = n == 1 || x.extent == result.extent;
      if (!steps[k] && (x.extent == Extent::rows && n_rows_ > 1))
        in[k] = spread_rows(k, x, at_[step.in[k]]), steps[k] = 1;
      any |= steps[k] != 0;
    }
    for (uint32_t k = 0; k < step.n_in; ++k)
      if (!steps[k] && (!step.elementwise->scalars || !any))
        in[k] = spread(k, value(step.in[k]), in[k], n), steps[k] = 1, any = true;
    char* const out = at_[step.result];
    step.elementwise->loop(in, steps, out, n);
    if (step.rounds) round(result.half, out, n);
  }
  void run_generated(uint32_t index) {
    const GeneratedLoop& loop = group_.loops[index];
    const void* in[2 * most_values];  // of values, then functions
    void* out[most_values];
    bool by_row = false;
    for (size_t k = 0; k < loop.in.size(); ++k) {
      in[k] = at_[loop.in[k]];
      by_row |= value(loop.in[k]).extent == Extent::rows;
    }
    for (size_t k = 0; k < loop.out.size(); ++k) out[k] = at_[loop.out[k]];
    std::copy(loop.calls.begin(), loop.calls.end(), in + loop.in.size());
    const int64_t rows = by_row ? n_rows_ : 1;
    call_.functions[index](in, out, rows, n_ / rows);
  }
  bool takes_rows(const Instruction& step) const {
    return std::any_of(step.in, step.in + step.n_in, [&](uint32_t v) { return value(v).extent == Extent::rows; });
  }
  // Row by row, where some operands have one element of each.
  void run_rows(const Instruction& step) {
    const Operand& result = value(step.result);
    char *in[max_elementwise_in] = {}, *out = at_[step.result];
    int64_t steps[max_elementwise_in], next[max_elementwise_in];
    for (uint32_t k = 0; k < step.n_in; ++k) {
      const Operand& x = value(step.in[k]);
      in[k] = at_[step.in[k]], steps[k] = x.extent == Extent::all;
      next[k] = x.extent == Extent::all ? space_.columns * x.bytes : x.extent == Extent::rows ? x.bytes : 0;
    }
    for (int64_t i = 0; i < n_rows_; ++i) {
      const void* const of_row[] = {in[0], in[1], in[2]};
      step.elementwise->loop(of_row, steps, out, space_.columns);
      for (uint32_t k = 0; k < step.n_in; ++k) in[k] += next[k];
      out += space_.columns * result.bytes;
    }
    if (step.rounds) round(result.half, at_[step.result], n_);
  }
  void round(Half half, char* x, int64_t n) {
    narrow(half, x, raw_, n);
    widen(half, raw_, x, n);
  }
  char* spread_of(uint32_t k) const { return spread_ + k * size_t(tile_elements) * group_.widest; }
  const void* spread(uint32_t k, const Operand& x, const void* one, int64_t n) {
    fill(one, spread_of(k), n, x.bytes);
    return spread_of(k);
  }
  const void* spread_rows(uint32_t k, const Operand& x, const char* rows) {
    for (int64_t i = 0; i < n_rows_; ++i)
      fill(rows + i * x.bytes, spread_of(k) + i * space_.columns * x.bytes, space_.columns, x.bytes);
    return spread_of(k);
  }

  // ---- reductions

  char* state(const Instruction& step) const { return states_ + step.state * Reduction::state_bytes; }
  void reduce(const Instruction& step) {
    if (!whole()) return step.reduction->add(state(step), at_[step.in[0]], n_);
    step.reduction->rows(at_[step.in[0]], n_rows_, space_.columns, at_[step.result]);
    if (step.rounds) round(value(step.result).half, at_[step.result], n_rows_);
  }
  void add_to_totals(const Instruction& step) {
    totals_.add(step, row_, column_, at_[step.in[0]], n_rows_, n_ / n_rows_);
  }
  void start_reductions(const Pass& pass) {
    for (const Instruction& step : pass.body)
      if (step.kind == Instruction::reduce) step.reduction->start(state(step));
  }
  void finish_reductions(const Pass& pass) {
    for (const Instruction& step : pass.body) {
      if (step.kind != Instruction::reduce) continue;
      step.reduction->total(state(step), space_.columns, at_[step.result]);
      if (step.rounds) round(value(step.result).half, at_[step.result], 1);
    }
  }

  // ---- results

  void store(Half half, int bytes, const char* from, char* to, int64_t step, int64_t n) {
    if (half != Half::no) narrow(half, from, step == 1 ? to : raw_, n), from = raw_, bytes = 2;
    if (half != Half::no && step == 1) return;
    if (step == 1) std::memcpy(to, from, size_t(n * bytes));
    else
      for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * step * bytes, from + i * bytes, size_t(bytes));
  }
  void store_output(size_t i) {
    const uint32_t v = group_.outputs[i];
    const Half half = converts(v);
    const int bytes = bytes_of(v);
    const Memory& m = call_.output(i);
    const int64_t n = n_ / n_rows_;
    char* const first = m.data + (space_.offset(m, row_) + column_ * m.step) * m.bytes;
    if (at_[v] == first) return;
    if (space_.is_run(m, n_rows_)) return store(half, bytes, at_[v], first, 1, n_);
    space_.for_rows(m, row_, n_rows_, [&](int64_t r, int64_t offset) {
      store(half, bytes, at_[v] + r * n * bytes, m.data + (offset + column_ * m.step) * m.bytes, m.step, n);
    });
  }
  void store_tile() {
    for (size_t i = 0; i < group_.outputs.size(); ++i)
      if (value(group_.outputs[i]).extent == Extent::all) store_output(i);
  }
  // What this pass has made.
  void store_tile_of(const Pass& pass) {
    for (size_t i = 0; i < group_.outputs.size(); ++i) {
      const uint32_t v = group_.outputs[i];
      if (value(v).extent != Extent::all) continue;
      for (const Instruction& step : pass.body)
        if (makes(step, v)) store_output(i);
    }
  }
  bool makes(const Instruction& step, uint32_t v) const {
    if (step.kind != Instruction::generated) return step.result == v;
    const std::vector<uint32_t>& out = group_.loops[step.result].out;
    return std::find(out.begin(), out.end(), v) != out.end();
  }
  void store_rows() {
    for (size_t i = 0; i < group_.outputs.size(); ++i) {
      const Operand& x = value(group_.outputs[i]);
      if (x.extent != Extent::rows) continue;
      const Memory& m = call_.output(i);
      space_.for_rows(m, row_, n_rows_, [&](int64_t r, int64_t offset) {
        store(x.half, x.bytes, at_[group_.outputs[i]] + r * x.bytes, m.data + offset * m.bytes, 1, 1);
      });
    }
  }

  const Call& call_;
  const Group& group_;
  const Space& space_;
  Totals totals_;
  const Pass* pass_ = nullptr;  // of this tile
  struct Ahead {
    const char *at, *end;
    bool writes;
  };
  Ahead ahead_[2 * most_in_memory];  // of the next tile
  size_t n_ahead_ = 0;
  int64_t n_left_ = 0;  // instructions on all elements of this tile
  char *registers_, *spread_, *raw_, *rows_, *kept_, *states_;
  char* at_[most_values];                              // of each value in this tile
  int64_t row_ = 0, n_rows_ = 1, column_ = 0, n_ = 0;  // n_: elements of the tile
};
}  // namespace dovetail::cpu
