// Runs a group: rows of its index space, or blocks of short rows, are divided among the threads, by sizes alone.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "compile/space.hpp"
#include "dovetail/backend.hpp"
#include "scratch.hpp"

namespace dovetail::cpu {
namespace {
using dvt::codegen::Value;
constexpr int64_t long_row = 128;          // worth a tile of its own
constexpr int64_t tiles_of_part = 16;      // of a row without reductions
constexpr int64_t worth_a_thread = 65536;  // elements times instructions
constexpr int64_t shortest_row = 32;       // worth a call of a loop of its own

// A group with the operands of one run.
struct Call {
  Call(const Group& g, const Conversions& c, const GeneratedFunction* f)
      : group(g), schedule(f ? g.joined : g.plain), conversions(c), functions(f) {}

  const Group& group;
  const Schedule& schedule;
  const Conversions& conversions;
  const GeneratedFunction* functions;
  Space space;
  size_t n_inputs = 0;
  Memory memory[2 * most_in_memory + most_values];  // of inputs' values, then of outputs
  uint32_t input_of[most_values];                   // of each value its entry in `memory`
  uint64_t one[most_values];                        // values of one element

  const Memory& output(size_t i) const { return memory[n_inputs + i]; }
};

template <class F>
void for_type_of(int bytes, F f) {
  if (bytes == 1) f(uint8_t());
  else if (bytes == 2) f(uint16_t());
  else if (bytes == 4) f(uint32_t());
  else f(uint64_t());
}
void copy_elements(const char* from, int64_t step, char* to, int64_t n, int bytes) {
  if (step == 1) return void(std::memcpy(to, from, size_t(n * bytes)));
  for_type_of(bytes, [&](auto zero) {
    using T = decltype(zero);
    const T* in = reinterpret_cast<const T*>(from);
    T* out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) out[i] = in[i * step];
  });
}
void fill(const void* value, char* to, int64_t n, int bytes) {
  for_type_of(bytes, [&](auto x) {
    std::memcpy(&x, value, sizeof x);
    std::fill_n(reinterpret_cast<decltype(x)*>(to), n, x);
  });
}

// One thread's work on its rows.
class Worker {
 public:
  explicit Worker(const Call& c) : call_(c), group_(c.group), space_(c.space) {}

  bool start() {
    const size_t tile = size_t(tile_elements) * group_.widest;
    const size_t row = size_t(tile_elements) * 8, kept = size_t((space_.columns + 7) & ~7) * group_.widest;
    const bool wide = space_.columns > tile_elements;
    const size_t bytes = tile * (group_.n_registers + max_elementwise_in + 1) + row * group_.n_rows +
                         Reduction::state_bytes * group_.n_reductions + (wide ? kept * group_.n_kept : 0);
    char* at = static_cast<char*>(scratch(Scratch::group, bytes));
    if (!at) return false;
    const auto take = [&](size_t n) { return std::exchange(at, at + n); };
    registers_ = take(tile * group_.n_registers);
    spread_ = take(tile * max_elementwise_in);
    raw_ = take(tile);
    rows_ = take(row * group_.n_rows);
    states_ = take(Reduction::state_bytes * group_.n_reductions);
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

  // Where the values of a tile are, but for inputs in place.
  void point(const Pass& pass) {
    const size_t tile = size_t(tile_elements) * group_.widest;
    for (const uint32_t v : pass.made) {
      const Operand& x = group_.values[v];
      if (pass.place[v] != nowhere) at_[v] = registers_ + pass.place[v] * tile;
      else if (x.kept != nowhere)
        at_[v] = kept_ + (size_t(x.kept) * size_t((space_.columns + 7) & ~7) + size_t(column_)) * group_.widest;
    }
    for (size_t i = 0; i < group_.outputs.size(); ++i) {  // straight to memory
      const Operand& x = value(group_.outputs[i]);
      const Memory& m = call_.output(i);
      if (x.extent == Extent::all && pass.place[group_.outputs[i]] != nowhere && x.half == Half::no &&
          space_.is_run(m, n_rows_))
        at_[group_.outputs[i]] = m.data + (space_.offset(m, row_) + column_) * m.bytes;
    }
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
  void fetch(const Operand& x, const char* from, int64_t step, char* to, int64_t n) {
    if (x.half == Half::no) return copy_elements(from, step, to, n, x.bytes);
    if (step != 1) copy_elements(from, step, raw_, n, 2), from = raw_;
    widen(x.half, from, to, n);
  }

  void load(uint32_t v) {
    const Operand& x = value(v);
    const Memory& m = call_.memory[call_.input_of[v]];
    if (space_.is_run(m, n_rows_)) {
      char* const from = m.data + (space_.offset(m, row_) + column_) * m.bytes;
      if (x.half == Half::no) at_[v] = from;
      else widen(x.half, from, at_[v], n_);
      return;
    }
    const int64_t n = n_ / n_rows_;
    space_.for_rows(m, row_, n_rows_, [&](int64_t i, int64_t offset) {
      fetch(x, m.data + (offset + column_ * m.step) * m.bytes, m.step, at_[v] + i * n * x.bytes, n);
    });
  }

  void load_rows() {
    for (const uint32_t v : group_.row_inputs) {
      const Operand& x = group_.values[v];
      const Memory& m = call_.memory[call_.input_of[v]];
      space_.for_rows(m, row_, n_rows_, [&](int64_t i, int64_t offset) {
        fetch(x, m.data + offset * m.bytes, 1, at_[v] + i * x.bytes, 1);
      });
    }
  }

  void run(const Instruction& step) {
    if (step.kind == Instruction::load) return load(step.result);
    if (step.kind == Instruction::reduce) return reduce(step);
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
    const void* in[most_values];
    void* out[most_values];
    bool by_row = false;
    for (size_t k = 0; k < loop.in.size(); ++k) {
      in[k] = at_[loop.in[k]];
      by_row |= value(loop.in[k]).extent == Extent::rows;
    }
    for (size_t k = 0; k < loop.out.size(); ++k) out[k] = at_[loop.out[k]];
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

  void store(const Operand& x, const char* from, char* to, int64_t step, int64_t n) {
    if (x.half != Half::no) narrow(x.half, from, step == 1 ? to : raw_, n), from = raw_;
    if (x.half != Half::no && step == 1) return;
    const int bytes = x.half == Half::no ? x.bytes : 2;
    if (step == 1) std::memcpy(to, from, size_t(n * bytes));
    else
      for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * step * bytes, from + i * bytes, size_t(bytes));
  }
  void store_output(size_t i) {
    const uint32_t v = group_.outputs[i];
    const Operand& x = value(v);
    const Memory& m = call_.output(i);
    const int64_t n = n_ / n_rows_;
    char* const first = m.data + (space_.offset(m, row_) + column_ * m.step) * m.bytes;
    if (at_[v] == first) return;
    if (space_.is_run(m, n_rows_)) return store(x, at_[v], first, 1, n_);
    space_.for_rows(m, row_, n_rows_, [&](int64_t r, int64_t offset) {
      store(x, at_[v] + r * n * x.bytes, m.data + (offset + column_ * m.step) * m.bytes, m.step, n);
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
        store(x, at_[group_.outputs[i]] + r * x.bytes, m.data + offset * m.bytes, 1, 1);
      });
    }
  }

  const Call& call_;
  const Group& group_;
  const Space& space_;
  char *registers_, *spread_, *raw_, *rows_, *kept_, *states_;
  char* at_[most_values];                              // of each value in this tile
  int64_t row_ = 0, n_rows_ = 1, column_ = 0, n_ = 0;  // n_: elements of the tile
};

// Values of one element: constants, inputs, and what follows from them.
void set_ones(Call& c, const dvt_exe_call& exe) {
  const auto widened = [&](const Operand& x, const void* from, uint64_t& to) {
    if (x.half == Half::no) std::memcpy(&to, from, x.bytes);
    else
      (x.half == Half::f16 ? c.conversions.widen_f16 : c.conversions.widen_bf16)(from,
                                                                                 reinterpret_cast<float*>(&to), 1);
  };
  const Group& g = c.group;
  for (size_t v = 0; v < g.values.size(); ++v) {
    const Operand& x = g.values[v];
    if (x.extent != Extent::one || x.source == Value::step) continue;
    widened(x, x.source == Value::constant ? &x.value : dvt::data<void>(exe.call->in[x.index]), c.one[v]);
  }
  for (const Instruction& step : g.once) {
    const void* in[max_elementwise_in];
    int64_t steps[max_elementwise_in];
    for (uint32_t k = 0; k < step.n_in; ++k) in[k] = &c.one[step.in[k]], steps[k] = 1;
    step.elementwise->loop(in, steps, &c.one[step.result], 1);
    const Operand& x = g.values[step.result];
    if (!step.rounds) continue;
    uint16_t narrow = 0;
    (x.half == Half::f16 ? c.conversions.narrow_f16 : c.conversions.narrow_bf16)(
        reinterpret_cast<const float*>(&c.one[step.result]), &narrow, 1);
    widened(x, &narrow, c.one[step.result]);
  }
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    const Operand& x = g.values[g.outputs[i]];
    if (x.extent != Extent::one) continue;
    char* const to = dvt::data<char>(exe.call->out[i]);
    if (x.half == Half::no) std::memcpy(to, &c.one[g.outputs[i]], x.bytes);
    else
      (x.half == Half::f16 ? c.conversions.narrow_f16 : c.conversions.narrow_bf16)(
          reinterpret_cast<const float*>(&c.one[g.outputs[i]]), to, 1);
  }
}

void set_memory(Call& c, const dvt_exe_call& exe) {
  const Group& g = c.group;
  const int rank = int(g.space.size());
  size_t n = 0;
  for (size_t v = 0; v < g.values.size(); ++v) {
    const Operand& x = g.values[v];
    if (x.source != Value::input || x.extent == Extent::one) continue;
    c.input_of[v] = uint32_t(n);
    set_memory(c.memory[n++], *exe.call->in[x.index], x, rank);
  }
  c.n_inputs = n;
  for (size_t i = 0; i < g.outputs.size(); ++i)
    set_memory(c.memory[n++], *exe.call->out[i], g.values[g.outputs[i]], rank);
  Layout(g, exe, c.memory, n).run(c.space);
}

dvt_status no_memory() { return DVT_FAIL(DVT_OOM, "[compile] no memory for a group's tiles"); }

// body(worker, i) for i in [0, n), `work` elements each.
template <class Body>
dvt_status divide(const Call& c, int64_t n, int64_t work, Body body) {
  const int64_t instructions = int64_t(c.group.plain.whole.body.size()),
                each = std::max<int64_t>(work * instructions, 1);
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(n), uint64_t(worth_a_thread / each + 1), [&](uint64_t begin, uint64_t end, uint32_t) {
    Worker worker(c);
    if (!worker.start()) return complete.store(false, std::memory_order_relaxed);
    for (uint64_t i = begin; i < end; ++i) body(worker, int64_t(i));
  });
  return complete ? DVT_OK : no_memory();
}
}  // namespace

// Where an eager reduction joins the terms in another order: of few rows, or of an input whose rows are not what is
// contiguous.
const char* refuses(const Group& g, const dvt_exe_call& exe) {
  if (!g.has_reductions()) return nullptr;
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < g.space.size(); ++axis) rows *= size_of(g, exe, axis);
  const int64_t columns = size_of(g, exe, g.space.size() - 1);
  if (rows < 16 && rows * columns >= 4 * 32768) return "few rows of many terms";
  for (const Instruction& step : g.plain.whole.body) {
    if (!g.as_eager || step.kind != Instruction::reduce || g.values[step.in[0]].source != Value::input) continue;
    const DLTensor& t = *exe.call->in[g.values[step.in[0]].index];
    if (t.strides[t.ndim - 1] == 1 || columns == 1) continue;
    for (int axis = 0; axis + 1 < t.ndim; ++axis)
      if (t.strides[axis] == 1 && t.shape[axis] != 1) return "a reduction along an axis that is not contiguous";
  }
  return nullptr;
}

dvt_status run(const Group& g, const Conversions& conversions, const GeneratedFunction* functions,
               const dvt_exe_call& exe) {
  if (g.flat)
    if (const FlatRun flat = run_flat(g, functions, exe); flat != FlatRun::declined)
      return flat == FlatRun::done ? DVT_OK : no_memory();
  Call c(g, conversions, functions);
  set_ones(c, exe);
  set_memory(c, exe);
  const Space& s = c.space;
  if (!s.rows || (!s.columns && !g.n_rows)) return DVT_OK;  // rows without elements may have values of their own
  if (s.columns <= tile_elements) {
    // Values of one element a row are written out for each of its elements, unless rows go one by one.
    const int64_t rows = g.n_rows && s.columns >= long_row ? 1 : tile_elements / std::max<int64_t>(s.columns, 1);
    const int64_t block = std::clamp<int64_t>(rows, 1, tile_elements);
    return divide(c, (s.rows + block - 1) / block, block * s.columns,
                  [&](Worker& w, int64_t i) { w.run_block(i * block, std::min(block, s.rows - i * block)); });
  }
  const int64_t part = g.n_rows ? s.columns : tile_elements * tiles_of_part, parts = (s.columns + part - 1) / part;
  return divide(c, s.rows * parts, std::min(part, s.columns), [&](Worker& w, int64_t i) {
    const int64_t begin = i % parts * part;
    w.run_row(i / parts, begin, std::min(begin + part, s.columns));
  });
}
}  // namespace dovetail::cpu
