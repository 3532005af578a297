// Calls that run as their op's decomposition. A program is kept for what it was traced for (dtypes, ranks,
// attributes that are no numbers); its guards say for which sizes and numbers it is right. The binding and the
// plans of each set of sizes are kept, too, the most recent ones.
#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "dispatch/executables.hpp"
#include "dispatch/execute.hpp"
#include "text.hpp"

namespace dovetail {
DecompositionTracer decomposition_tracer = nullptr;

namespace {
using Programs = std::vector<std::shared_ptr<const Program>>;

// What is kept of one op.
class Decompositions {
 public:
  ExecutableCache executables;

  Programs programs_for(const std::string& pattern) {
    const std::lock_guard lock(mutex_);
    const auto found = programs_.find(pattern);
    return found == programs_.end() ? Programs{} : found->second;
  }

  void add(const std::string& pattern, std::shared_ptr<const Program> program) {
    const std::lock_guard lock(mutex_);
    Programs& known = programs_[pattern];
    if (known.size() >= kMostPrograms) known.erase(known.begin());
    known.push_back(std::move(program));
  }

 private:
  static constexpr size_t kMostPrograms = 64;  // of one pattern; only a decomposition that fixes its sizes has many
  std::mutex mutex_;
  std::unordered_map<std::string, Programs> programs_;
};

Decompositions& decompositions_of(const Op& op) {
  static std::mutex mutex;
  static auto& all = *new std::unordered_map<const Op*, std::unique_ptr<Decompositions>>;
  const std::lock_guard lock(mutex);
  auto& made = all[&op];
  if (!made) made = std::make_unique<Decompositions>();
  return *made;
}

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// What a decomposition may look at without a guard: dtypes, ranks, and attributes that are no numbers.
std::string pattern_of(const Invocation& inv) {
  std::string key;
  append(key, inv.n_in);
  for (int i = 0; i < inv.n_in; ++i) {
    const Tensor* t = inv.in[i];
    key.push_back(char(t ? t->dtype : DType::none));
    key.push_back(char(t ? t->rank() : -1));
    key.push_back(char(t ? inv.plan->compute_of(i) : DType::none));
  }
  for (int i = 0; i < inv.op.n_attr; ++i) {
    const dvt_attr& a = inv.attrs.at[i];
    append(key, a.kind), append(key, a.count);
    if (a.kind == DVT_A_F64S) key.append(reinterpret_cast<const char*>(a.v.fs), sizeof(double) * a.count);
    else if (a.kind == DVT_A_STR) key.append(a.v.s, a.count);
    else if (a.kind == DVT_A_DTYPE) append(key, a.v.dt);
    else if (a.kind == DVT_A_BOOL || a.kind == DVT_A_U64) append(key, a.v.raw);
  }
  return key;
}

// The sizes and numbers, which guards are about; and the device.
std::string sizes_of(const Invocation& inv) {
  std::string key;
  append(key, inv.device->index);
  for (int i = 0; i < inv.n_in; ++i)
    if (const Tensor* t = inv.in[i]) {
      key.push_back(t->device ? 'a' : 's');
      key.append(reinterpret_cast<const char*>(t->dims), sizeof(int64_t) * size_t(t->rank()));
    }
  for (int i = 0; i < inv.op.n_attr; ++i) {
    const dvt_attr& a = inv.attrs.at[i];
    if (a.kind == DVT_A_I64S) key.append(reinterpret_cast<const char*>(a.v.is), sizeof(int64_t) * a.count);
    else if (a.kind == DVT_A_I64 || a.kind == DVT_A_F64) append(key, a.v.raw);
  }
  return key;
}

// Decompositions are other people's: what follows relies on the rule's shapes.
void check_outputs(const Invocation& inv, const Binding& b) {
  const Program& p = *b.program;
  for (size_t i = 0; i < p.outputs.size(); ++i)
    if (const TensorType& made = b.values[size_t(p.outputs[i])]; !made.same_shape(*inv.out[i]))
      inv.fail(ErrorKind::runtime, "its decomposition gives shape " + to_string(made.shape()) +
                                       ", its shape rule says " + to_string(inv.out[i]->shape()));
}

DType working(DType t, const Op& op) {
  return t != DType::none && is_narrow_float(t) && op.spec.flags & op_half_in_f32 ? DType::f32 : t;
}

// A program around `decomposition`, which records calls on the operands in the dtypes in which they compute (narrow
// floats in float32): operands are cast to these, and results back.
template <class Decomposition>
std::shared_ptr<const Program> with_casts(const Invocation& inv, const Decomposition& decomposition) {
  const auto builder = std::make_shared<ProgramBuilder>();  // a decomposition may keep its tracers
  std::vector<int> operands;
  for (int i = 0; i < inv.n_in; ++i)
    operands.push_back(inv.in[i] ? builder->input(inv.in[i]->dtype, inv.in[i]->shape()) : -1);
  for (int i = 0; i < inv.n_in; ++i)
    if (operands[size_t(i)] >= 0)
      operands[size_t(i)] = builder->cast(operands[size_t(i)], working(inv.plan->compute_of(i), inv.op));
  std::vector<int> outputs = decomposition(builder, operands);
  if (outputs.size() != inv.op.spec.n_out)
    inv.fail(ErrorKind::runtime, "its decomposition gives " + std::to_string(outputs.size()) +
                                     " arrays: expected " + std::to_string(inv.op.spec.n_out));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const DType made = builder->value(outputs[i]).dtype, result = inv.plan->result[i];
    if (made != result && !is_narrow_float(result))
      inv.fail(ErrorKind::runtime, std::string("its decomposition gives ") + info(made).name +
                                       ", its dtype rule says " + info(result).name);
    outputs[i] = builder->cast(outputs[i], result);
  }
  return builder->finish(outputs);
}

// The operands of a call without those that are not given, as a program's inputs are.
template <class T>
class GivenOperands {
 public:
  explicit GivenOperands(const Invocation& inv) {
    if (inv.n_in > kMaxInputs) many_.resize(size_t(inv.n_in)), data_ = many_.data();
    std::copy_if(inv.in, inv.in + inv.n_in, data_, [](const Tensor* t) { return t != nullptr; });
  }
  GivenOperands(const GivenOperands&) = delete;
  const T* const* data() const { return data_; }

 private:
  const T* few_[kMaxInputs];
  std::vector<const T*> many_;
  const T** data_ = few_;
};

std::optional<Binding> bind_call(const Invocation& inv, const std::shared_ptr<const Program>& program) {
  return bind_program(program, GivenOperands<TensorType>(inv).data(), &inv.attrs);
}

// One that the library brings, for the dtypes of the call; nullptr where it has none for these sizes.
std::shared_ptr<const Program> shipped(const Invocation& inv) {
  auto candidates = shipped_decompositions(inv.op, decomposition_pattern(inv));
  if (candidates.empty()) candidates = shipped_decompositions(inv.op, decomposition_pattern(inv, false));
  if (candidates.empty()) return nullptr;
  bool casts = false;
  std::vector<TensorType> operands(size_t(inv.n_in));
  std::vector<const TensorType*> given;
  for (int i = 0; i < inv.n_in; ++i) {
    const Tensor* t = inv.in[i];
    if (!t) continue;
    operands[size_t(i)].dtype = working(inv.plan->compute_of(i), inv.op);
    operands[size_t(i)].set_shape(t->shape());
    casts |= operands[size_t(i)].dtype != t->dtype;
    given.push_back(&operands[size_t(i)]);
  }
  for (const auto& program : candidates) {
    const auto binding = bind_program(program, given.data(), &inv.attrs);
    if (!binding) continue;
    for (size_t i = 0; i < program->outputs.size(); ++i)
      casts |= binding->values[size_t(program->outputs[i])].dtype != inv.plan->result[i];
    if (!casts) return program;
    return with_casts(inv, [&](const auto& builder, std::vector<int> in) {
      std::erase(in, -1);
      return record_inline(*builder, *binding, in);
    });
  }
  return nullptr;
}

Binding bound(const Invocation& inv, Decompositions& known) {
  const std::string pattern = pattern_of(inv);
  for (const auto& program : known.programs_for(pattern))
    if (auto binding = bind_call(inv, program)) return std::move(*binding);
  std::shared_ptr<const Program> program = shipped(inv);
  if (!program) program = trace_decomposition(inv);
  auto binding = bind_call(inv, program);
  if (!binding) inv.fail(ErrorKind::runtime, "its decomposition gave another program for the same sizes");
  known.add(pattern, std::move(program));
  return std::move(*binding);
}
}  // namespace

std::shared_ptr<const Program> trace_decomposition(const Invocation& inv) {
  if (!decomposition_tracer)
    inv.fail(ErrorKind::not_implemented, "has no kernel, and this library brings no decomposition for " +
                                             decomposition_pattern(inv) + ": it needs the Python front end");
  return with_casts(inv, [&](const auto& builder, const std::vector<int>& operands) {
    return decomposition_tracer(inv, builder, operands);  // takes the GIL: no lock is held
  });
}

std::string decomposition_pattern(const Invocation& inv, bool ranks) {
  std::string text;
  for (int i = 0; i < inv.n_in; ++i) {
    const Tensor* t = inv.in[i];
    text += i ? "," : "";
    text += t ? info(working(inv.plan->compute_of(i), inv.op)).brief : "-";
    if (t && ranks) text += "." + std::to_string(t->rank());
  }
  for (int i = 0; i < inv.op.n_attr; ++i) {
    const dvt_attr& a = inv.attrs.at[i];
    text += i ? "," : ";";
    switch (a.kind) {
      case DVT_A_NONE: text += "-"; break;
      case DVT_A_I64: text += "i"; break;
      case DVT_A_F64: text += "f"; break;
      case DVT_A_I64S: text += "i" + std::to_string(a.count); break;
      case DVT_A_BOOL: text += a.v.i ? "true" : "false"; break;
      case DVT_A_STR: text += "'" + std::string(a.v.s, a.count) + "'"; break;
      case DVT_A_DTYPE: text += info(*dtype_of(a.v.dt)).brief; break;
      default: text += std::to_string(a.kind) + ":" + std::to_string(a.v.raw); break;
    }
  }
  return text;
}

std::shared_ptr<const Executable> decomposition_of(const Invocation& inv) {
  Decompositions& known = decompositions_of(inv.op);
  std::string key = pattern_of(inv) + sizes_of(inv);
  if (auto found = known.executables.find(key)) return found;
  Binding binding = bound(inv, known);
  check_outputs(inv, binding);
  auto made = make_executable(std::move(binding), *inv.device);
  known.executables.keep(std::move(key), made);
  return made;
}

static void add_ops(const Program& p, std::vector<const Op*>& ops) {
  for (const Program::Node& node : p.nodes)
    if (!(node.op->spec.flags & op_control)) ops.push_back(node.op);
  for (const auto& part : p.programs) add_ops(*part, ops);
}

std::vector<const Op*> decomposition_ops(const Invocation& inv) {
  std::vector<const Op*> ops;
  add_ops(*bound(inv, decompositions_of(inv.op)).program, ops);
  return ops;
}

void run_decomposition(Invocation& inv, const Executable& executable) {
  replay(executable, GivenOperands<Tensor>(inv).data(), inv.out);
  for (uint32_t i = 0; i < inv.op.spec.n_out; ++i)
    if (Tensor& out = *inv.out[i]; !out.device) out = materialise(out, *inv.device);  // a constant
}

void run_decomposition(Invocation& inv) {
  std::shared_ptr<const Executable> executable;
  try {
    executable = decomposition_of(inv);
    run_decomposition(inv, *executable);
  } catch (const Error& e) {
    if (e.kind != ErrorKind::not_implemented) throw;
    if (std::string_view(e.what()).starts_with("[" + inv.op.spec.name + "]")) throw;
    throw Error(e.kind, "[" + inv.op.spec.name + "] its decomposition: " + e.what());
  }
}

// A primitive that the device has in float32: operands up, result down.
void run_via_f32(Invocation& inv) {
  if (inv.op.spec.flags & op_converts) {
    *inv.out[0] = cast(cast(*inv.in[0], DType::f32, *inv.device), inv.plan->result[0], *inv.device);
    return;
  }
  std::vector<Tensor> casts;
  casts.reserve(size_t(inv.n_in));
  std::vector<const Tensor*> in;
  for (int i = 0; i < inv.n_in; ++i) {
    const Tensor* t = inv.in[i];
    const DType want = t ? working(inv.plan->compute_of(i), inv.op) : DType::none;
    if (t && t->dtype != want) t = &casts.emplace_back(cast(*t, want, *inv.device));
    in.push_back(t);
  }
  Attrs attrs = inv.attrs;
  if (inv.op.dtype_attr >= 0 && attrs.given(inv.op.dtype_attr)) {
    dvt_attr& a = attrs.at[inv.op.dtype_attr];
    a.v.dt = info(working(attrs.dtype(inv.op.dtype_attr), inv.op)).dl;
  }
  Tensor wide[kMaxOutputs];
  call(inv.op, inv.device, in.data(), inv.n_in, attrs, wide);
  for (uint32_t i = 0; i < inv.op.spec.n_out; ++i) {
    const DType result = inv.plan->result[i];
    *inv.out[i] = wide[i].dtype == result ? std::move(wide[i]) : cast(wide[i], result, *inv.device);
  }
}

// ---- whether a call can run -------------------------------------------------------------------------------------
namespace {
std::string missing_for(const Op& op, std::span<const Tensor* const> in, const Attrs& given, Device& device) {
  Attrs attrs = given;
  Tensor out[kMaxOutputs];
  Invocation inv{.op = op, .device = &device, .in = in.data(), .n_in = int(in.size()), .attrs = attrs};
  for (uint32_t i = 0; i < op.spec.n_out; ++i) inv.out[i] = &out[i];
  try {
    inv.infer();
    return missing_kernel(inv);
  } catch (const Error& e) {
    if (e.kind != ErrorKind::not_implemented) throw;
    return e.what();
  }
}

std::string missing_cast(const Tensor& t, DType to, Device& device) {
  static const Op& astype = op("astype");
  if (t.dtype == to || !t.device) return {};
  Attrs attrs;
  attrs.at[0] = {DVT_A_DTYPE, 1, {.dt = info(to).dl}};
  const Tensor* in[] = {&t};
  return missing_for(astype, in, attrs, device);
}

}  // namespace

std::string missing_kernel(const Executable& e) {
  std::string missing;
  for (size_t k = 0; k < e.nodes.size() && missing.empty(); ++k) {
    const Program::Node& node = e.binding.program->nodes[k];
    if (!e.nodes[k].plan) {
      for (const auto& part : e.nodes[k].programs)
        if (missing.empty()) missing = missing_kernel(*part);
      continue;
    }
    if (e.nodes[k].nested) {
      missing = missing_kernel(*e.nodes[k].nested);
      continue;
    }
    std::vector<const Tensor*> in;
    for (const int i : node.in) in.push_back(i < 0 ? nullptr : &e.values[size_t(i)]);
    missing = missing_for(*node.op, in, e.binding.nodes[k].attrs, *e.device);
  }
  return missing;
}

std::string missing_kernel(const Invocation& inv) {
  const Plan::Mode mode = inv.plan->mode;
  uint64_t given = 0;
  for (int i = 0; i < inv.n_in; ++i) given |= uint64_t{inv.has(i)} << i;
  if (mode == Plan::host_fallback)
    return "[" + inv.op.spec.name + "] no kernel for " + dtype_list(*inv.plan, given, inv.n_in);
  if (mode == Plan::decomposition) try {
      return missing_kernel(*decomposition_of(inv));
    } catch (const Error& e) {
      if (e.kind != ErrorKind::not_implemented) throw;
      return e.what();
    }
  if (mode != Plan::via_f32) return {};
  if (inv.op.spec.flags & op_converts) return missing_cast(*inv.in[0], DType::f32, *inv.device);
  std::vector<Tensor> operands(size_t(inv.n_in));
  std::vector<const Tensor*> in(size_t(inv.n_in), nullptr);
  for (size_t i = 0; i < in.size(); ++i) {
    const Tensor* t = inv.in[i];
    if (!t) continue;
    const DType want = working(inv.plan->compute_of(int(i)), inv.op);
    if (const std::string missing = missing_cast(*t, want, *inv.device); !missing.empty()) return missing;
    operands[i].set_type(want, inv.device);
    operands[i].set_shape(t->shape());
    in[i] = &operands[i];
  }
  Attrs attrs = inv.attrs;
  if (inv.op.dtype_attr >= 0 && attrs.given(inv.op.dtype_attr))
    attrs.at[inv.op.dtype_attr].v.dt = info(working(attrs.dtype(inv.op.dtype_attr), inv.op)).dl;
  return missing_for(inv.op, in, attrs, *inv.device);
}
}  // namespace dovetail
