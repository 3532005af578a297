// Which decompositions serve a call: those that the library brings, and those that a program's file does.
#include <algorithm>
#include <map>
#include <new>
#include <set>

#include "dispatch/decompose.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/run_program.hpp"
#include "graph/text.hpp"

namespace dovetail {
namespace {
thread_local const Program* preparing = nullptr;
thread_local uint64_t uses = 0;

// The last parameter may stand for any number of operands.
bool is_value(const Op& op, int operand) {
  return op.operand_kinds[std::min(operand, op.n_in - 1)] == ParamKind::value;
}

// In which the value operands compute, where it is one for all.
DType value_dtype(const Invocation& inv) {
  DType found = DType::none;
  for (int i = 0; i < inv.n_in; ++i) {
    if (!inv.in[i] || !is_value(inv.op, i)) continue;
    const DType t = working(inv.plan->compute_of(i), inv.op);
    if (found != DType::none && t != found) return DType::none;
    found = t;
  }
  return found;
}

// Newer attributes come last.
int attributes_of(const Op& op, uint32_t version) {
  int n = 0;
  for (const ParamSpec& p : op.spec.params) n += !is_operand(p.kind) && p.since <= version;
  return n;
}

// What version `version` of the op does not have is not given.
bool is_of_version(const Invocation& inv, uint32_t version) {
  for (int i = attributes_of(inv.op, version); i < inv.op.n_attr; ++i)
    if (!same_value(inv.attrs.at[i], inv.op.defaults.at[i])) return false;
  for (int i = int(operands_of(inv.op, version)); i < inv.n_in && !inv.op.variadic; ++i)
    if (inv.in[i]) return false;
  return true;
}
}  // namespace

std::string decomposition_pattern(const Invocation& inv, bool ranks, DType any, uint32_t version) {
  std::string text;
  const bool fewer = version < inv.op.spec.version && !inv.op.variadic;
  const int n_in = fewer ? std::min(inv.n_in, int(operands_of(inv.op, version))) : inv.n_in;
  for (int i = 0; i < n_in; ++i) {
    const Tensor* t = inv.in[i];
    text += i ? "," : "";
    const bool is_any = any != DType::none && is_value(inv.op, i);
    text += !t ? "-" : is_any ? "*" : info(working(inv.plan->compute_of(i), inv.op)).brief;
    if (t && ranks) text += "." + std::to_string(t->rank());
  }
  const int n_attr = version < inv.op.spec.version ? attributes_of(inv.op, version) : inv.op.n_attr;
  for (int i = 0; i < n_attr; ++i) {
    const dvt_attr& a = inv.attrs.at[i];
    text += i ? "," : ";";
    switch (a.kind) {
      case DVT_A_NONE: text += "-"; break;
      case DVT_A_I64: text += "i"; break;
      case DVT_A_F64: text += "f"; break;
      case DVT_A_I64S: text += "i" + std::to_string(a.count); break;
      case DVT_A_BOOL: text += a.v.i ? "true" : "false"; break;
      case DVT_A_STR: text += "'" + std::string(a.v.s, a.count) + "'"; break;
      case DVT_A_DTYPE: text += *dtype_of(a.v.dt) == any ? "*" : info(*dtype_of(a.v.dt)).brief; break;
      default: text += std::to_string(a.kind) + ":" + std::to_string(a.v.raw); break;
    }
  }
  return text;
}

std::vector<std::shared_ptr<const Program>> shipped_for(const Invocation& inv) {
  for (const DType any : {DType::none, value_dtype(inv)})
    for (const bool ranks : {true, false}) {
      auto found = shipped_decompositions(inv.op, decomposition_pattern(inv, ranks, any), any);
      if (!found.empty()) return found;
    }
  return {};
}

BroughtDecompositions::BroughtDecompositions(const Program& program) : before_(preparing) {
  if (!program.decompositions.empty()) preparing = &program;
}
BroughtDecompositions::~BroughtDecompositions() { preparing = before_; }
uint64_t uses_of_brought() { return uses; }
void note_use_of_brought() { ++uses; }

std::vector<std::shared_ptr<const Program>> brought_for(const Invocation& inv) {
  std::vector<std::shared_ptr<const Program>> found;
  if (!preparing) return found;
  const auto known = preparing->decompositions.find(inv.op.spec.name);
  if (known == preparing->decompositions.end()) return found;
  for (const Program::Decomposition& d : known->second)
    if (is_of_version(inv, d.version) && d.pattern == decomposition_pattern(inv, true, DType::none, d.version))
      found.push_back(d.program);
  return found;
}

namespace {
// Collects the decompositions of a program's calls.
class Collector {
 public:
  void add(const Binding& b) {
    for (size_t k = 0; k < b.nodes.size(); ++k) {
      const Program::Node& node = b.program->nodes[k];
      if (node.op->spec.flags & op_control)
        for (const auto& part : b.programs.at(k)) add(*part);
      else if (node.op->spec.flags & kDecomposes) add(node, *b.nodes[k].attrs, b.values);
    }
  }
  Program::Decompositions found;

 private:
  // In some dtypes: traced() finds out whether in those of a call.
  static constexpr uint32_t kDecomposes = op_has_decomposition | op_complex_decomposition | op_stored_decomposition;

  void add(const Program::Node& node, Attrs attrs, std::span<const TensorType> values) {
    std::vector<Tensor> operands(node.in.size());
    std::vector<const Tensor*> in;
    for (size_t i = 0; i < node.in.size(); ++i) {
      if (node.in[i] >= 0) {
        operands[i].set_type(values[size_t(node.in[i])].dtype, nullptr);
        operands[i].set_shape(values[size_t(node.in[i])].shape());
      }
      in.push_back(node.in[i] < 0 ? nullptr : &operands[i]);
    }
    Invocation inv(*node.op, nullptr, in.data(), int(in.size()), attrs);
    Tensor out[kMaxOutputs];
    for (uint32_t k = 0; k < node.op->spec.n_out; ++k) inv.out[k] = &out[k];
    Plan plan;
    inv.infer_abstract(plan);
    inv.plan = &plan;
    for (size_t i = 0; i < operands.size(); ++i)  // the decomposition gets them after casts
      for (const DType to : casts_of(inv, int(i)))
        if (in[i] && operands[i].dtype != to) add_cast(operands[i], to);
    Plan of_casts;
    inv.infer_abstract(of_casts);
    inv.plan = &of_casts;
    add(inv);
  }

  void add_cast(Tensor& x, DType to) {
    static const Op& astype = op("astype");
    Attrs attrs;
    attrs.at[0] = {DVT_A_DTYPE, 1, {.dt = info(to).dl}};
    const Tensor* in[] = {&x};
    Invocation cast(astype, nullptr, in, 1, attrs);
    Tensor out;
    cast.out[0] = &out;
    Plan plan;
    cast.infer_abstract(plan);
    cast.plan = &plan;
    add(cast);
    x.set_type(to, nullptr);
  }

  void add(const Invocation& inv) {
    std::vector<const TensorType*> given;
    std::string sizes = inv.op.spec.name + " " + decomposition_pattern(inv);
    for (int i = 0; i < inv.n_in; ++i)
      if (inv.in[i]) {
        given.push_back(inv.in[i]);
        for (const int64_t n : inv.in[i]->shape()) sizes += " " + std::to_string(n);
      }
    if (!seen_.insert(sizes).second) return;
    const std::string pattern = decomposition_pattern(inv);
    if (const auto known = found.find(inv.op.spec.name); known != found.end())
      for (const auto& d : known->second)
        if (d.pattern == pattern)
          if (const auto bound = bind_program(d.program, given.data(), &inv.attrs)) return add(*bound);
    std::shared_ptr<const Program> program;
    for (const auto& candidate : shipped_for(inv))
      if (!program && bind_program(candidate, given.data(), &inv.attrs)) program = candidate;
    if (!program) program = traced(inv);
    if (!program) return;
    auto bound = bind_program(program, given.data(), &inv.attrs);
    if (!bound || !program->arrays.empty()) return;
    found[inv.op.spec.name].push_back({inv.op.spec.version, pattern, program});
    add(*bound);
  }

  // nullptr where the op has no decomposition for such a call: a device runs it by a kernel. Errors of the front
  // end are of its own kinds.
  static std::shared_ptr<const Program> traced(const Invocation& inv) {
    try {
      return trace_decomposition(inv);
    } catch (const Error& e) {
      if (e.kind == ErrorKind::memory || e.kind == ErrorKind::runtime) throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception&) {
    }
    return nullptr;
  }

  std::set<std::string> seen_;
};
}  // namespace

Program::Decompositions collect_decompositions(const std::shared_ptr<const Program>& program) {
  Collector collector;
  RunnableProgram(program).try_bindings([&](const Binding& b) { collector.add(b); });
  return std::move(collector.found);
}
}  // namespace dovetail
