// Runs a group: rows of its index space, or blocks of short rows, are divided among the threads, by sizes alone.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "compile/group.hpp"
#include "dovetail/backend.hpp"
#include "scratch.hpp"

namespace dovetail::cpu {
namespace {
using dvt::codegen::Value;
constexpr int64_t long_row = 128;          // worth a loop of its own
constexpr int64_t tiles_of_part = 16;      // of a row without reductions
constexpr int64_t worth_a_thread = 65536;  // elements times instructions

// How a value in memory lies in the index space: strides in elements.
struct Memory {
  char* data;
  int64_t step;  // along a row
  int64_t stride[DVT_MAX_NDIM];
  uint8_t bytes;
  bool of_rows;  // one element a row
};

// The index space of one call: rows of columns, the outer axes merged where everything allows it.
struct Space {
  int64_t rows = 1, columns = 1;
  int n_outer = 0;
  int64_t size[DVT_MAX_NDIM];

  // The offset of a row, in elements.
  int64_t offset(const Memory& m, int64_t row) const {
    int64_t sum = 0;
    for (int axis = n_outer; axis-- > 0; row /= size[axis]) sum += row % size[axis] * m.stride[axis];
    return sum;
  }
  // f(i, offset) for n rows from `row` on.
  template <class F>
  void for_rows(const Memory& m, int64_t row, int64_t n, F f) const {
    if (n_outer <= 1) {
      const int64_t stride = n_outer ? m.stride[0] : 0;
      for (int64_t i = 0; i < n; ++i) f(i, (row + i) * stride);
      return;
    }
    int64_t at[DVT_MAX_NDIM], offset = 0;
    for (int axis = n_outer; axis-- > 0; row /= size[axis])
      at[axis] = row % size[axis], offset += at[axis] * m.stride[axis];
    for (int64_t i = 0; i < n; ++i) {
      f(i, offset);
      int axis = n_outer - 1;
      for (offset += m.stride[axis]; ++at[axis] == size[axis] && axis > 0; --axis)
        offset += m.stride[axis - 1] - size[axis] * m.stride[axis], at[axis] = 0;
    }
  }
  // Are n rows from any row on one run of memory?
  bool is_run(const Memory& m, int64_t n) const {
    return m.step == 1 && (n == 1 || (n_outer == 1 && m.stride[0] == columns));
  }
};

struct Call {
  Call(const Group& g, const Conversions& c) : group(g), conversions(c) {}

  const Group& group;
  const Conversions& conversions;
  Space space{};
  size_t n_inputs = 0;
  Memory memory[2 * most_in_memory + most_values];  // of inputs' values, then of outputs
  uint32_t input_of[most_values];                   // of each value its entry in `memory`
  uint64_t one[most_values];                        // values of one element

  const Memory& output(size_t i) const { return memory[n_inputs + i]; }
};

int64_t size_of(const Group& g, const dvt_exe_call& c, size_t axis) {
  const int64_t n = g.space[axis];
  return n < 0 ? c.symbols[-1 - n] : n;
}

Memory memory_of(const DLTensor& t, const Operand& x, int rank) {
  Memory m{dvt::data<char>(&t), 0, {}, uint8_t(x.type.bits / 8), x.extent == Extent::rows};
  for (int i = 0; i < t.ndim; ++i) {
    const int64_t stride = t.shape[i] == 1 ? 0 : t.strides[i];
    if (x.first_axis + i == rank - 1) m.step = stride;
    else m.stride[x.first_axis + i] = stride;
  }
  return m;
}

// Merges outer axes and, without reductions and values of rows, these with the columns.
class Layout {
 public:
  Layout(const Group& g, const dvt_exe_call& c, Memory* all, size_t n) : group_(g), call_(c), all_(all), n_(n) {}

  Space run() {
    Space s;
    const int rank = int(group_.space.size());
    s.columns = size_of(group_, call_, size_t(rank) - 1);
    int64_t size[DVT_MAX_NDIM];
    int n = 0;  // outer axes, from the inside out, in their own places
    int place[DVT_MAX_NDIM];
    for (int axis = rank - 1; axis-- > 0;) {
      const int64_t here = size_of(group_, call_, size_t(axis));
      if (here == 1) continue;
      if (n == 0 && !group_.has_reductions() && continues_columns(axis, s.columns)) {
        if (s.columns == 1)
          for (size_t k = 0; k < n_; ++k) all_[k].step = all_[k].stride[axis];
        s.columns *= here;
        continue;
      }
      s.rows *= here;
      if (n && continues(axis, place[n - 1], size[n - 1])) {
        size[n - 1] *= here;
        continue;
      }
      size[n] = here, place[n++] = axis;
    }
    s.n_outer = n;
    for (int i = 0; i < n; ++i) s.size[i] = size[n - 1 - i];
    for (size_t k = 0; k < n_; ++k) {
      int64_t stride[DVT_MAX_NDIM];
      for (int i = 0; i < n; ++i) stride[i] = all_[k].stride[place[n - 1 - i]];
      std::copy_n(stride, n, all_[k].stride);
    }
    return s;
  }

 private:
  bool continues_columns(int axis, int64_t columns) const {
    for (size_t k = 0; k < n_; ++k)
      if (all_[k].of_rows ? all_[k].stride[axis] != 0
                          : columns != 1 && all_[k].stride[axis] != all_[k].step * columns)
        return false;
    return true;
  }
  bool continues(int axis, int inner, int64_t size) const {
    for (size_t k = 0; k < n_; ++k)
      if (all_[k].stride[axis] != all_[k].stride[inner] * size) return false;
    return true;
  }

  const Group& group_;
  const dvt_exe_call& call_;
  Memory* const all_;
  const size_t n_;
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
    point(group_.whole);
    for (const Instruction& step : group_.whole.body) run(step);
    store_rows();
    store_tile();
  }

  // One row, or of a group without reductions its columns from `begin` to `end`.
  void run_row(int64_t row, int64_t begin, int64_t end) {
    row_ = row, n_rows_ = 1;
    load_rows();
    for (const Pass& pass : group_.passes) {
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
    const Operand& result = value(step.result);
    const int64_t n = result.extent == Extent::all ? n_ : result.extent == Extent::rows ? n_rows_ : 1;
    const void* in[max_elementwise_in];
    int64_t steps[max_elementwise_in];
    bool any = false;
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
        if (step.result == v) store_output(i);
    }
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
    c.memory[n++] = memory_of(*exe.call->in[x.index], x, rank);
  }
  c.n_inputs = n;
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    const Operand& x = g.values[g.outputs[i]];
    c.memory[n++] = memory_of(*exe.call->out[i], x, rank);
  }
  c.space = Layout(g, exe, c.memory, n).run();
}

// body(worker, i) for i in [0, n), `work` elements each.
template <class Body>
dvt_status divide(const Call& c, int64_t n, int64_t work, Body body) {
  const int64_t instructions = int64_t(c.group.whole.body.size()), each = std::max<int64_t>(work * instructions, 1);
  std::atomic<bool> complete{true};
  dvt::parallel_for(uint64_t(n), uint64_t(worth_a_thread / each + 1), [&](uint64_t begin, uint64_t end, uint32_t) {
    Worker worker(c);
    if (!worker.start()) return complete.store(false, std::memory_order_relaxed);
    for (uint64_t i = begin; i < end; ++i) body(worker, int64_t(i));
  });
  return complete ? DVT_OK : DVT_FAIL(DVT_OOM, "[compile] no memory for a group's tiles");
}
}  // namespace

// Eager reductions of few rows of many terms, and of inputs whose rows are not dense, join terms in another order.
const char* refuses(const Group& g, const dvt_exe_call& exe) {
  if (!g.has_reductions()) return nullptr;
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < g.space.size(); ++axis) rows *= size_of(g, exe, axis);
  const int64_t columns = size_of(g, exe, g.space.size() - 1);
  for (const Instruction& step : g.whole.body) {
    const bool of_input = step.kind == Instruction::reduce && g.values[step.in[0]].source == Value::input;
    if (!of_input || !g.as_eager) continue;
    const DLTensor& x = *exe.call->in[g.values[step.in[0]].index];
    if (x.ndim && x.shape[x.ndim - 1] > 1 && x.strides[x.ndim - 1] != 1) return "a reduction of a strided input";
  }
  return rows < 16 && rows * columns >= 4 * 32768 ? "few rows of many terms" : nullptr;
}

dvt_status run(const Group& g, const Conversions& conversions, const dvt_exe_call& exe) {
  Call c(g, conversions);
  set_ones(c, exe);
  set_memory(c, exe);
  const Space& s = c.space;
  if (!s.rows || (!s.columns && !g.has_reductions())) return DVT_OK;
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
