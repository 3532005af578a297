// Runs a group: rows of its index space, or blocks of short rows, are divided among the threads, by sizes alone.
#include <atomic>

#include "compile/worker.hpp"

namespace dovetail::cpu {
namespace {
using dvt::codegen::Value;
constexpr int64_t long_row = 128;          // worth a tile of its own
constexpr int64_t tiles_of_part = 16;      // of a row without reductions
constexpr int64_t worth_a_thread = 65536;  // elements times instructions

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
// A group with totals: chunks of rows, and parts of columns, are divided among the threads.
dvt_status run_totals(Call& c) {
  c.parts = column_parts(c.group, c.space.rows, c.space.columns);
  const ColumnParts& p = c.parts;
  size_t bytes = 0;
  const auto bytes_of = [&](const Instruction& t) {
    return (size_t(p.chunks * p.columns) * t.reduction->columns.bytes + 63) & ~size_t(63);
  };
  for (const Instruction& t : c.group.totals) bytes += bytes_of(t);
  char* at = static_cast<char*>(scratch(Scratch::result, bytes));
  char* partial[most_in_memory];
  if (!at) return DVT_FAIL(DVT_OOM, "[compile] no memory for a group's partial results");
  for (const Instruction& t : c.group.totals) partial[t.state] = std::exchange(at, at + bytes_of(t));
  const dvt_status status = divide(c, p.chunks * p.parts(), p.rows / p.chunks * p.width, [&](Worker& w, int64_t i) {
    w.run_columns(i / p.parts(), i % p.parts(), partial);
  });
  if (status != DVT_OK) return status;
  Worker last(c);
  if (!last.start()) return DVT_FAIL(DVT_OOM, "[compile] no memory for a group's tiles");
  last.store_totals(partial);
  return DVT_OK;
}
}  // namespace

void set_ones(Call& c, const dvt_exe_call& exe, const uint32_t* inputs) {
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
    const uint32_t input = inputs && x.source == Value::input ? inputs[x.index] : x.index;
    widened(x, x.source == Value::constant ? &x.value : dvt::data<void>(exe.call->in[input]), c.one[v]);
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

int64_t rows_of_tile(const Group& g, int64_t columns) {
  // Values of one element a row are written out for each of its elements, unless rows go one by one.
  const int64_t rows = g.n_rows && columns >= long_row ? 1 : tile_elements / std::max<int64_t>(columns, 1);
  return std::clamp<int64_t>(rows, 1, tile_elements);
}

// Where an eager reduction joins the terms in another order: of few rows, or of an input whose rows are not what is
// contiguous.
const char* refuses(const Group& g, const dvt_exe_call& exe) {
  if (!g.totals.empty()) return refuses_totals(g, exe);
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

// Without reductions both are the same.
uint64_t in_place(const Group& g, const dvt_exe_call& exe) {
  const bool whole_rows = size_of(g, exe, g.space.size() - 1) <= tile_elements;
  return whole_rows ? g.in_place_of_rows : g.in_place_of_passes;
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
  if (!g.totals.empty()) return run_totals(c);
  if (!s.rows || (!s.columns && !g.n_rows)) return DVT_OK;  // rows without elements may have values of their own
  if (s.columns <= tile_elements) {
    const int64_t block = rows_of_tile(g, s.columns);
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
