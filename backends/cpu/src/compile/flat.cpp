// Runs a group on small arrays as one tile, without the general way's index space. Arrays that lie as the index
// space does are read in place, others, as slices of rows, row by row.
#include <algorithm>
#include <cstring>

#include "compile/group.hpp"
#include "dovetail/backend.hpp"
#include "scratch.hpp"

namespace dovetail::cpu {
namespace {
using dvt::codegen::Value;

enum class Lies { whole /* row-major */, in_rows /* that are contiguous */, otherwise };

// How an array with an element for each of the index space lies in memory.
Lies lies(const DLTensor& t, const Group& g, const dvt_exe_call& exe) {
  if (size_t(t.ndim) != g.space.size()) return Lies::otherwise;
  int64_t step = 1;
  Lies found = Lies::whole;
  for (int axis = t.ndim; axis-- > 0;) {
    const int64_t n = g.space[size_t(axis)], size = n < 0 ? exe.symbols[-1 - n] : n;
    if (t.shape[axis] != size) return Lies::otherwise;
    if (size != 1 && t.strides[axis] != step) {
      if (axis == t.ndim - 1) return Lies::otherwise;
      found = Lies::in_rows;
    }
    step *= size;
  }
  return found;
}

// The rows of an array, one after the other.
void gather(const DLTensor& t, size_t bytes, char* to) {
  const int outer = t.ndim - 1;
  const size_t row = size_t(t.shape[outer]) * bytes;
  int64_t at[DVT_MAX_NDIM] = {}, offset = 0;
  for (;;) {
    std::memcpy(to, dvt::data<char>(&t) + offset * int64_t(bytes), row);
    to += row;
    int axis = outer - 1;
    for (; axis >= 0; --axis) {
      offset += t.strides[axis];
      if (++at[axis] < t.shape[axis]) break;
      offset -= at[axis] * t.strides[axis], at[axis] = 0;
    }
    if (axis < 0) return;
  }
}

int64_t elements(const DLTensor& t) {
  int64_t n = 1;
  for (int axis = 0; axis < t.ndim; ++axis) n *= t.shape[axis];
  return n;
}
}  // namespace

bool is_flat(const Group& g) {
  const auto all = [&](uint32_t v) { return g.values[v].extent == Extent::all; };
  if (g.n_rows || g.n_reductions || !g.once.empty() || g.outputs.empty()) return false;
  for (const Operand& x : g.values)
    if (x.half != Half::no) return false;
  for (const uint32_t v : g.outputs)
    if (!all(v)) return false;
  for (const Instruction& step : g.plain.whole.body) {
    if (step.kind == Instruction::load) continue;
    bool any = false, ones = false;
    for (uint32_t k = 0; k < step.n_in; ++k) (all(step.in[k]) ? any : ones) = true;
    if (!any || (ones && !step.elementwise->scalars)) return false;
  }
  return true;
}

FlatRun run_flat(const Group& g, const GeneratedFunction* functions, const dvt_exe_call& exe) {
  const DLTensor* const* const out = exe.call->out;
  const int64_t n = elements(*out[0]);
  if (!n || n > tile_elements) return FlatRun::declined;
  for (size_t i = 0; i < g.outputs.size(); ++i)
    if (lies(*out[i], g, exe) != Lies::whole) return FlatRun::declined;
  const Pass& pass = (functions ? g.joined : g.plain).whole;
  const size_t tile = (size_t(n) * g.widest + 63) & ~size_t{63};
  char* const registers = static_cast<char*>(scratch(Scratch::group, tile * g.n_registers));
  if (!registers) return FlatRun::no_memory;
  char* at[most_values];
  for (size_t v = 0; v < g.values.size(); ++v) {
    const Operand& x = g.values[v];
    if (x.source == Value::constant) {
      at[v] = reinterpret_cast<char*>(const_cast<uint64_t*>(&x.value));
    } else if (x.source == Value::input) {
      const DLTensor& t = *exe.call->in[x.index];
      const Lies how = x.extent == Extent::all ? lies(t, g, exe) : Lies::whole;
      if (how == Lies::otherwise) return FlatRun::declined;
      at[v] = how == Lies::whole ? dvt::data<char>(&t) : registers + pass.place[v] * tile;
    } else if (pass.place[v] != nowhere) {
      at[v] = registers + pass.place[v] * tile;
    }
  }
  for (size_t i = 0; i < g.outputs.size(); ++i) at[g.outputs[i]] = dvt::data<char>(out[i]);
  for (const Instruction& step : pass.body) {
    if (step.kind == Instruction::load) {
      const Operand& x = g.values[step.result];
      const DLTensor& t = *exe.call->in[x.index];
      if (at[step.result] != dvt::data<char>(&t)) gather(t, x.bytes, at[step.result]);
    } else if (step.kind == Instruction::loop) {
      const void* in[max_elementwise_in];
      int64_t steps[max_elementwise_in];
      for (uint32_t k = 0; k < step.n_in; ++k)
        in[k] = at[step.in[k]], steps[k] = g.values[step.in[k]].extent == Extent::all;
      step.elementwise->loop(in, steps, at[step.result], n);
    } else if (step.kind == Instruction::generated) {
      const GeneratedLoop& loop = g.loops[step.result];
      const void* in[2 * most_values];  // of values, then functions
      void* results[most_values];
      for (size_t k = 0; k < loop.in.size(); ++k) in[k] = at[loop.in[k]];
      for (size_t k = 0; k < loop.out.size(); ++k) results[k] = at[loop.out[k]];
      std::copy(loop.calls.begin(), loop.calls.end(), in + loop.in.size());
      functions[step.result](in, results, 1, n);
    }
  }
  return FlatRun::done;
}
}  // namespace dovetail::cpu
