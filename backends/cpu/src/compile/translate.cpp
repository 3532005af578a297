#include <algorithm>
#include <cstring>

#include "compile/group.hpp"

namespace dovetail::cpu {
namespace codegen = dvt::codegen;
namespace {
constexpr uint32_t none = codegen::none;

Half half_of(DLDataType t) {
  return dvt::same(t, dvt::f16) ? Half::f16 : dvt::same(t, dvt::bf16) ? Half::bf16 : Half::no;
}
bool is_op(const dvt_node& node, const char* op) { return !std::strcmp(node.op, op); }

// Of an element in a tile, where fp16 and bf16 are float.
uint8_t bytes_of(DLDataType t) { return half_of(t) != Half::no ? 4 : uint8_t(t.bits / 8); }

bool matches(const LoopRow& row, const dvt_program& p, const dvt_node& node) {
  const auto fits = [](DLDataType wanted, DLDataType t) {
    return wanted.code == DVT_ANY ? wanted.bits == 8 * bytes_of(t) : dvt::same(wanted, t);
  };
  if (row.text) {
    const dvt_attr* a = node.n_attr ? node.attr : nullptr;
    const bool given = a && a->kind == DVT_A_STR;
    if (given ? a->count != std::strlen(row.text) || std::memcmp(a->v.s, row.text, a->count)
              : std::strcmp(row.text, "none"))
      return false;
  }
  uint32_t n = 0;
  for (uint32_t i = 0; i < node.n_in; ++i) {
    if ((row.absent >> i & 1) != (node.in[i] == none)) return false;
    if (node.in[i] == none) continue;
    if (n == max_elementwise_in || !fits(row.in[n], p.values[node.in[i]].dtype)) return false;
    ++n;
  }
  return n == (row.loop ? row.loop->n_in : 1) && fits(row.out, p.values[node.out[0]].dtype);
}

class Translation {
 public:
  Translation(const LoopTable& table, const dvt_program& p, Group& out) : table_(table), program_(p), group_(out) {}

  const char* run() {
    if (const char* reason = codegen::lower(program_, loops_)) return reason;
    group_.space = loops_.space;
    group_.n_inputs = program_.n_inputs;
    group_.as_eager = program_.flags & DVT_P_ROUND_EACH;
    for (const codegen::Value& v : loops_.values) add_value(v);
    if (numbers_) return "a number that is no input";
    if (constant_array_) return "a constant array that is no input";
    if (wide_) return "elements of more than 64 bits";
    if (group_.values.size() > most_values || std::max(group_.n_inputs, program_.n_outputs) > most_in_memory)
      return "too many values";
    for (const codegen::Step& step : loops_.steps) {
      if (const char* reason = add_step(step)) return reason;
    }
    group_.outputs = loops_.outputs;
    for (uint32_t v : group_.outputs)
      if (group_.values[v].source != codegen::Value::step) return "a result that no node makes";
    for (uint32_t v = 0; v < group_.values.size(); ++v)
      if (group_.values[v].extent == Extent::rows && group_.values[v].source == codegen::Value::input)
        group_.row_inputs.push_back(v);
    make_whole();
    for (const codegen::Pass& pass : loops_.passes) make_pass(pass);
    group_.n_kept = loops_.n_kept;
    const std::vector<Pass>& passes = group_.plain.passes;
    group_.in_place_of_rows = in_place(&group_.plain.whole, 1);
    group_.in_place_of_passes = in_place(passes.data(), passes.size());
    join(group_, active_level());
    group_.flat = is_flat(group_);
    return nullptr;
  }

 private:
  void add_value(const codegen::Value& v) {
    if (v.dtype.bits > 64) wide_ = true;
    Operand made{v.dtype,  Extent::one, bytes_of(v.dtype), half_of(v.dtype),
                 v.source, v.index,     v.first_axis,      v.kept};
    const DLTensor& t = program_.values[v.value];
    if (v.varies) {
      made.extent = Extent::all;
    } else if (v.source == codegen::Value::input) {
      for (int32_t i = 0; i < t.ndim; ++i)
        if (t.shape[i] != 1) made.extent = Extent::rows;
      if (made.extent == Extent::rows) made.row = group_.n_rows++;
    } else if (v.source == codegen::Value::step) {
      made.extent = Extent::rows;  // until its operands say otherwise
    }
    if (v.source == codegen::Value::number) numbers_ = true;
    if (v.source == codegen::Value::constant &&
        std::any_of(t.shape, t.shape + t.ndim, [](int64_t n) { return n != 1; }))
      constant_array_ = true;
    if (v.source == codegen::Value::constant && !wide_)
      std::memcpy(&made.value, dvt::data<char>(&t), size_t(t.dtype.bits / 8));
    if (v.source != codegen::Value::step) group_.widest = std::max(group_.widest, made.bytes);
    group_.values.push_back(made);
  }

  const char* add_step(const codegen::Step& step) {
    const LoopRow* row = table_.find(program_, *step.node);
    if (!row || bool(row->reduction) != (step.reduces || step.leading))
      return "no loop for this op and these dtypes";
    Instruction made;
    made.kind = step.reduces ? Instruction::reduce : step.leading ? Instruction::reduce_columns : Instruction::loop;
    made.elementwise = row->loop, made.reduction = row->reduction;
    made.result = step.result, made.op = row->op, made.absent = row->absent;
    Operand& result = group_.values[step.result];
    Extent extent = Extent::one;
    for (uint32_t v : step.operands) {
      if (v == none) continue;
      made.in[made.n_in++] = v;
      extent = std::max(extent, group_.values[v].extent);
    }
    result.extent = step.reduces ? Extent::rows : step.leading ? Extent::columns : extent;
    if (result.extent == Extent::rows) result.row = group_.n_rows++;
    group_.widest = std::max(group_.widest, result.bytes);
    if (step.reduces) made.state = group_.n_reductions++;
    const bool each = program_.flags & DVT_P_ROUND_EACH || is_op(*step.node, "dvt.astype");
    if (step.leading) made.state = uint32_t(group_.totals.size());
    made.rounds = result.half != Half::no && each;
    if (step.leading) group_.totals.push_back(made);
    steps_.push_back(made);
    return nullptr;
  }

  // ---- registers

  void clear(Pass& pass) const {
    pass.place.assign(group_.values.size(), nowhere);
    pass.is_half.assign(group_.values.size(), false);
  }
  // What comes first: the loads of inputs that are not in the pass yet.
  void append(Pass& pass, const Instruction& step, bool keeps) {
    for (uint32_t i = 0; i < step.n_in; ++i) {
      const Operand& x = group_.values[step.in[i]];
      if (x.extent != Extent::all || x.source != codegen::Value::input || pass.place[step.in[i]] != nowhere)
        continue;
      pass.body.emplace_back().result = step.in[i];
      pass.place[step.in[i]] = 0;  // its register follows
    }
    pass.body.push_back(step);
    const Operand& result = group_.values[step.result];
    if (result.extent == Extent::all && !(keeps && result.kept != nowhere)) pass.place[step.result] = 0;
  }

  void make_whole() {
    Pass& pass = group_.plain.whole;
    clear(pass);
    for (const Instruction& step : steps_) {
      if (group_.values[step.result].extent == Extent::one) group_.once.push_back(step);
      else append(pass, step, false);
    }
    allocate(group_, pass);
  }

  void make_pass(const codegen::Pass& from) {
    Pass& pass = group_.plain.passes.emplace_back();
    clear(pass);
    for (uint32_t i : from.before)
      if (group_.values[steps_[i].result].extent != Extent::one) pass.before.push_back(steps_[i]);
    for (uint32_t i : from.body) append(pass, steps_[i], true);
    allocate(group_, pass);
  }

  // ---- outputs on inputs

  // An input in memory that an output of this type may lie on.
  bool may_lie_below(uint32_t v, DLDataType type) const {
    return group_.values[v].source == codegen::Value::input && dvt::same(group_.values[v].type, type) &&
           codegen::is_whole(program_, loops_, v);
  }
  // A step may write its result to memory. Generated loops keep the order of the steps, and load before they store.
  uint64_t in_place(const Pass* passes, size_t n) const {
    uint64_t outputs = 0;
    for (size_t k = 0; k < group_.outputs.size(); ++k) {
      const uint32_t output = group_.outputs[k];
      const Operand& x = group_.values[output];
      bool fits = x.extent == Extent::all && codegen::is_whole(program_, loops_, output), written = false;
      for (const Pass* pass = passes; pass != passes + n; ++pass) {
        for (const Instruction& step : pass->body) {
          for (uint32_t i = 0; i < step.n_in; ++i) fits = fits && !(written && may_lie_below(step.in[i], x.type));
          written = written || step.result == output;
        }
      }
      if (fits) outputs |= uint64_t{1} << k;
    }
    return outputs;
  }

  const LoopTable& table_;
  const dvt_program& program_;
  Group& group_;
  codegen::Loops loops_;
  std::vector<Instruction> steps_;
  bool wide_ = false;            // a value of more than 64 bits
  bool numbers_ = false;         // the host gives numbers as inputs
  bool constant_array_ = false;  // as well as arrays
};
}  // namespace

LoopTable::LoopTable(const Table& table) {
  for (const LoopRow& row : table.loops()) rows_.push_back(&row);
  std::stable_sort(rows_.begin(), rows_.end(),
                   [](const LoopRow* a, const LoopRow* b) { return std::strcmp(a->op, b->op) < 0; });
}

const LoopRow* LoopTable::find(const dvt_program& p, const dvt_node& node) const {
  auto row = std::lower_bound(rows_.begin(), rows_.end(), node.op,
                              [](const LoopRow* a, const char* op) { return std::strcmp(a->op, op) < 0; });
  for (; row != rows_.end() && is_op(node, (*row)->op); ++row)
    if (matches(**row, p, node)) return *row;
  return nullptr;
}

const char* translate(const LoopTable& table, const dvt_program& p, Group& out) {
  return Translation(table, p, out).run();
}
}  // namespace dovetail::cpu
