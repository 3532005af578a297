// The compiler: a group of a program's nodes becomes one launch. docs/compiler_plugin.md of Dovetail explains it.
//
// It makes no machine code. dovetail/codegen.hpp gives a group as loops; Translation turns them into a list of
// instructions, each a loop over a part of a row, and Interpreter goes through the list. In their place goes your
// code generator: it prints the loops as source or IR of your device, and run() launches what came of that.
#include "compile.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "compile_instructions.hpp"
#include "dovetail/codegen.hpp"

namespace {
using dvt::same;
using dvt::codegen::Loops;
using dvt::codegen::none;
using dvt::codegen::Step;
using dvt::codegen::Value;
constexpr int64_t tile = 256;         // elements that an instruction computes
constexpr int64_t element_bytes = 8;  // in registers, at most

// ---- nodes ------------------------------------------------------------------------------------------------------

bool is_astype(const dvt_node& node) { return !std::strcmp(node.op, "dvt.astype"); }

struct NodeCode {
  const MapCode* map = nullptr;
  const FoldCode* fold = nullptr;  // neither of them: astype
  uint64_t casts = 0;              // bit i: operand i is cast to the result's type before
  const char* reason = nullptr;    // why there is no code
};

// Does code that takes operands of these types serve the node? If operands have other types than that of the
// result, the op casts them. Where the result is a bool their common type is not known: the device runs the node by
// itself.
bool takes(const dvt_program& p, const dvt_node& node, const std::vector<DLDataType>& in, uint64_t& casts) {
  const DLDataType result = p.values[node.out[0]].dtype, computed = codes().element(result)->computed;
  casts = 0;
  if (in.size() != node.n_in) return false;
  for (uint32_t i = 0; i < node.n_in; ++i) {
    const DLDataType type = p.values[node.in[i]].dtype, has = codes().element(type)->computed;
    const DLDataType wanted = in[i].code == DVT_ANY ? computed : in[i];
    const bool fits = same(has, wanted), of_result = same(wanted, computed) && result.code != DVT_BOOL;
    if (!fits && !of_result) return false;
    const bool loses = !same(result, computed);  // a cast to a narrow float rounds
    if (of_result && !same(type, result) && (!fits || loses)) casts |= uint64_t{1} << i;
  }
  return true;
}

NodeCode code_of(const dvt_program& p, const dvt_node& node) {
  NodeCode code;
  const ElementCode* const result = codes().element(p.values[node.out[0]].dtype);
  bool known = result;
  for (uint32_t i = 0; i < node.n_in; ++i)
    known = known && node.in[i] != none && codes().element(p.values[node.in[i]].dtype);
  if (!known) return code.reason = "no code for these dtypes", code;
  if (is_astype(node)) return code;
  const auto [fold, last_fold] = codes().folds.equal_range(node.op);
  for (auto f = fold; f != last_fold; ++f)
    if (same(f->second.type, result->computed) && takes(p, node, {f->second.type}, code.casts))
      return code.fold = &f->second, code;
  const auto [map, last_map] = codes().maps.equal_range(node.op);
  for (auto m = map; m != last_map; ++m) {
    const DLDataType out = m->second.out;
    const bool makes = out.code == DVT_ANY ? out.bits == result->computed.bits : same(out, result->computed);
    if (makes && takes(p, node, m->second.in, code.casts)) return code.map = &m->second, code;
  }
  code.reason = fold == last_fold && map == last_map ? "no code for this op" : "no code for these dtypes";
  return code;
}

// ---- code for a group -------------------------------------------------------------------------------------------

struct Instruction {
  Function run;
  std::vector<uint32_t> in;
  uint32_t out;
};
struct Folding {
  const FoldCode* fold;
  size_t state;  // where in the memory for states
  uint32_t in, out;
};
struct Access {
  uint32_t operand, reg;  // which tensor of the call
  int32_t first_axis;     // what its axis 0 is in the index space
  Function run;           // from or to memory
};
struct PassCode {
  std::vector<Instruction> before;  // once per row
  std::vector<Access> loads;
  std::vector<Instruction> body;
  std::vector<Folding> folds;
  std::vector<Access> stores;
  std::vector<Instruction> after;  // once per row
};
struct Register {
  bool varies;  // along a row
  int64_t bytes;
  uint32_t kept;  // which row of the workspace holds it, or none
};
struct Number {
  uint32_t entry, reg;
  bool is_real;
  const ElementCode* type;
};
struct alignas(element_bytes) Constant {
  char bytes[element_bytes] = {};
};
struct Code {
  std::vector<int64_t> space;  // sizes as programs write them
  std::vector<Register> registers;
  std::vector<std::pair<uint32_t, Constant>> constants;
  std::vector<Number> numbers;
  std::vector<Access> loads, stores;  // of one element per row
  std::vector<PassCode> passes;
  size_t state_bytes = 0;
  uint32_t n_kept = 0;
  uint64_t in_place = 0;  // outputs that may lie on inputs
};

// YOUR CODE: print the loops instead, as text_of() in dovetail/codegen.hpp does, and have that compiled.
class Translation {
 public:
  Translation(const dvt_program& p, const Loops& loops, Code& out) : program_(p), loops_(loops), code_(out) {}

  void run() {
    code_.space = loops_.space, code_.n_kept = loops_.n_kept;
    code_.in_place = dvt::codegen::in_place(program_, loops_);
    for (const Value& v : loops_.values) code_.registers.push_back({v.varies, bytes(v), v.kept});
    for (uint32_t r = 0; r < loops_.values.size(); ++r) add_given(r);
    for (const dvt::codegen::Pass& pass : loops_.passes) {
      PassCode& to = code_.passes.emplace_back();
      for (uint32_t s : pass.before) add_step(loops_.steps[s], to, to.before);
      for (uint32_t s : pass.body) add_loads(loops_.steps[s], to), add_step(loops_.steps[s], to, to.body);
    }
    for (uint32_t i = 0; i < loops_.outputs.size(); ++i) {
      const Value& v = loops_.values[loops_.outputs[i]];
      (v.varies ? code_.passes[v.pass].stores : code_.stores)
          .push_back({i, loops_.outputs[i], v.first_axis, element(v).store});
    }
  }

 private:
  static const ElementCode& element(const Value& v) { return *codes().element(v.dtype); }
  static int64_t bytes(const Value& v) { return element(v).computed.bits / 8; }

  // What is the same for a whole row, and no step makes.
  void add_given(uint32_t r) {
    const Value& v = loops_.values[r];
    if (v.source == Value::input && !v.varies) {
      code_.loads.push_back({v.index, r, v.first_axis, element(v).load});
    } else if (v.source == Value::constant) {
      const Elements from{dvt::data<char>(&program_.values[v.value]), 0};
      element(v).load(&from, {code_.constants.emplace_back(r, Constant()).second.bytes, 0}, 1);
    } else if (v.source == Value::number) {
      code_.numbers.push_back({v.index, r, program_.numbers[v.index].is_real != 0, &element(v)});
    }
  }

  void add_loads(const Step& step, PassCode& to) {
    for (uint32_t r : step.operands) {
      const Value& v = loops_.values[r];
      const bool known = std::any_of(to.loads.begin(), to.loads.end(), [=](const Access& a) { return a.reg == r; });
      if (v.source == Value::input && v.varies && !known)
        to.loads.push_back({v.index, r, v.first_axis, element(v).load});
    }
  }

  void add_step(const Step& step, PassCode& pass, std::vector<Instruction>& to) {
    const Value& result = loops_.values[step.result];
    if (is_astype(*step.node)) return add_cast(step.operands[0], step.result, result, to);
    const NodeCode code = code_of(program_, *step.node);
    std::vector<uint32_t> in = step.operands;
    for (size_t i = 0; i < in.size(); ++i)
      if (code.casts >> i & 1) {
        code_.registers.push_back({loops_.values[in[i]].varies, bytes(result), none});
        add_cast(in[i], uint32_t(code_.registers.size() - 1), result, to);
        in[i] = uint32_t(code_.registers.size() - 1);
      }
    if (code.fold) {
      pass.folds.push_back({code.fold, code_.state_bytes, in[0], step.result});
      code_.state_bytes += (code.fold->bytes + 15) / 16 * 16;
    } else {
      to.push_back({code.map->run, in, step.result});
    }
    if (program_.flags & DVT_P_ROUND_EACH && !same(element(result).computed, result.dtype))
      add_cast(step.result, step.result, result, code.fold ? pass.after : to);
  }

  void add_cast(uint32_t from, uint32_t to, const Value& type, std::vector<Instruction>& list) {
    for (const auto& [computed, run] : element(type).casts)
      if (same(computed, element(loops_.values[from]).computed)) list.push_back({run, {from}, to});
  }

  const dvt_program& program_;
  const Loops& loops_;
  Code& code_;
};

// ---- running it -------------------------------------------------------------------------------------------------

// What the device does in one launch, on a worker thread.
class Interpreter {
 public:
  Interpreter(const Code& code, std::vector<int64_t> space, const dvt_call* call)
      : code_(code),
        call_(call),
        columns_(space.back()),
        space_(std::move(space)),
        index_(space_.size(), 0),
        memory_(new char[code.registers.size() * size_t(tile * element_bytes)]),
        states_(new std::max_align_t[code.state_bytes / sizeof(std::max_align_t) + 1]) {}

  void set(uint32_t reg, const void* value) { std::memcpy(at(reg, 0).data, value, element_bytes); }

  void run() {
    for (const auto& [reg, value] : code_.constants) set(reg, value.bytes);
    int64_t rows = 1;
    for (size_t axis = 0; axis + 1 < space_.size(); ++axis) rows *= space_[axis];
    for (; rows > 0; --rows, next_row()) {
      for (const Access& a : code_.loads) load(a, 0, 1);
      for (const PassCode& pass : code_.passes) run_pass(pass);
      for (const Access& a : code_.stores) store(a, 0, 1);
    }
  }

 private:
  void run_pass(const PassCode& pass) {
    for (const Instruction& i : pass.before) run(i, 0, 1);
    for (const Folding& f : pass.folds) f.fold->begin(state(f));
    for (int64_t first = 0; first < columns_; first += tile) {
      const int64_t n = std::min(tile, columns_ - first);
      for (const Access& a : pass.loads) load(a, first, n);
      for (const Instruction& i : pass.body) run(i, first, n);
      for (const Folding& f : pass.folds) f.fold->take(state(f), at(f.in, first), n);
      for (const Access& a : pass.stores) store(a, first, n);
    }
    for (const Folding& f : pass.folds) f.fold->end(state(f), at(f.out, 0).data);
    for (const Instruction& i : pass.after) run(i, 0, 1);
  }

  void run(const Instruction& i, int64_t first, int64_t n) {
    Elements in[DVT_MAX_NDIM];
    for (size_t k = 0; k < i.in.size(); ++k) in[k] = at(i.in[k], first);
    i.run(in, at(i.out, first), n);
  }
  void load(const Access& a, int64_t first, int64_t n) {
    const Elements from = at(call_->in[a.operand], a.first_axis, first);
    a.run(&from, at(a.reg, first), n);
  }
  void store(const Access& a, int64_t first, int64_t n) {
    const Elements from = at(a.reg, first);
    a.run(&from, at(call_->out[a.operand], a.first_axis, first), n);
  }

  Elements at(uint32_t reg, int64_t first) {
    const Register& r = code_.registers[reg];
    if (r.kept == none) return {memory_.get() + reg * size_t(tile * element_bytes), r.varies ? r.bytes : 0};
    char* const row = static_cast<char*>(call_->workspace) + r.kept * size_t(columns_ * element_bytes);
    return {row + first * r.bytes, r.bytes};
  }
  // The element of the current row and column `first`. Axes of size 1 are repeated; operands may have any strides.
  Elements at(const DLTensor* t, int32_t first_axis, int64_t first) const {
    const int64_t bytes = t->dtype.bits / 8;
    Elements e{dvt::data<char>(t), 0};
    for (int32_t axis = 0; axis < t->ndim; ++axis) {
      const int64_t step = t->shape[axis] == 1 ? 0 : t->strides[axis] * bytes;
      const auto of_space = size_t(first_axis + axis);
      if (of_space + 1 == space_.size()) e.step = step, e.data += first * step;
      else e.data += index_[of_space] * step;
    }
    return e;
  }
  void* state(const Folding& f) { return reinterpret_cast<char*>(states_.get()) + f.state; }
  void next_row() {
    for (size_t axis = space_.size() - 1; axis-- > 0; index_[axis] = 0)
      if (++index_[axis] < space_[axis]) return;
  }

  const Code& code_;
  const dvt_call* const call_;
  const int64_t columns_;
  const std::vector<int64_t> space_;
  std::vector<int64_t> index_;  // of the row
  const std::unique_ptr<char[]> memory_;
  const std::unique_ptr<std::max_align_t[]> states_;
};
}  // namespace

// ---- the functions of dvt_compiler ------------------------------------------------------------------------------

struct dvt_exe {
  dvt_device* device;
  Code code;
};

namespace {
std::vector<int64_t> space_of(const dvt_exe* e, const dvt_exe_call* c) {
  std::vector<int64_t> sizes;
  for (int64_t size : e->code.space) sizes.push_back(size < 0 ? c->symbols[-1 - size] : size);
  return sizes;
}

dvt_status claim(dvt_device*, const dvt_program* p, dvt_claim* out) {
  dvt::codegen::claim(*p, [](const dvt_program& p, const dvt_node& node) { return code_of(p, node).reason; }, out);
  return DVT_OK;
}

dvt_status compile(dvt_device* d, const dvt_program* p, const char*, dvt_exe** out) {
  for (uint32_t n = 0; n < p->n_nodes; ++n)
    if (const char* reason = code_of(*p, *p->nodes[n]).reason)
      return DVT_FAIL(DVT_UNSUPPORTED, "%s: %s", p->nodes[n]->op, reason);
  Loops loops;
  if (const char* reason = dvt::codegen::lower(*p, loops)) return DVT_FAIL(DVT_UNSUPPORTED, "%s", reason);
  auto exe = std::make_unique<dvt_exe>();
  exe->device = d;
  Translation(*p, loops, exe->code).run();
  *out = exe.release();
  return DVT_OK;
}

// Every size and stride is welcome. The rows that later passes need again are kept in the workspace.
dvt_status query(dvt_exe* e, const dvt_exe_call* c, dvt_answer* answer) {
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  DVT_PUT(answer, dvt_answer, workspace, uint64_t(space_of(e, c).back() * element_bytes) * e->code.n_kept);
  DVT_PUT(answer, dvt_answer, in_place, e->code.in_place);
  return DVT_OK;
}

// The call, its sizes and numbers are invalid when this function returns: the launch has copies. YOUR CODE: launch
// what compile has made.
dvt_status run(dvt_exe* e, const dvt_exe_call* c) {
  std::vector<dvt_number_value> numbers(c->numbers, c->numbers + c->n_numbers);
  return launch(e->device, c->call,
                [e, space = space_of(e, c), numbers = std::move(numbers)](const dvt_call* call) {
                  Interpreter interpreter(e->code, space, call);
                  for (const Number& n : e->code.numbers) {
                    char value[element_bytes] = {};
                    n.type->number(n.is_real, numbers[n.entry], value);
                    interpreter.set(n.reg, value);
                  }
                  interpreter.run();
                });
}

void destroy(dvt_exe* e) { delete e; }
}  // namespace

const void* compiler_extension(const char* name, uint32_t version) {
  static const dvt_compiler compiler = [] {
    dvt_compiler c{};
    c.struct_size = sizeof c;
    c.flags = DVT_C_CAPTURE_SAFE;
    c.claim = claim, c.compile = compile, c.query = query, c.run = run, c.destroy = destroy;
    return c;
  }();
  return !std::strcmp(name, "dovetail.compiler") && version == DVT_X_COMPILER ? &compiler : nullptr;
}
