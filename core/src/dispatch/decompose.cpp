// Calls that run as their op's decomposition. A program is kept for what it was traced for (dtypes, ranks,
// attributes that are no numbers); its guards say for which sizes and numbers it is right. The binding and the
// plans of each set of sizes are kept, too, the most recent ones.
#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>

#include "dispatch/decompose.hpp"
#include "dispatch/executables.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/lower.hpp"
#include "dispatch/values.hpp"
#include "few.hpp"
#include "text.hpp"

namespace dovetail {
DecompositionTracer decomposition_tracer = nullptr;

// A program, and how devices run it for the dtypes of its pattern.
struct KnownProgram {
  std::shared_ptr<const Program> program;
  std::vector<std::shared_ptr<const ProgramPlans>> plans;  // of one device each; they may be out of date

  std::shared_ptr<const ProgramPlans> plans_on(const Device& device) const {
    if (!program->programs.empty()) return nullptr;  // dtypes may depend on how many rounds a loop has
    for (const auto& p : plans)
      if (p->device == &device && p->is_current()) return p;
    return nullptr;
  }
};
using Programs = std::vector<KnownProgram>;

// What is kept of one op.
class Decompositions {
 public:
  ExecutableCache executables;

  std::shared_ptr<const Programs> programs_for(std::string_view pattern) {
    const std::lock_guard lock(mutex_);
    const auto found = programs_.find(pattern);
    return found == programs_.end() ? std::make_shared<Programs>() : found->second;
  }

  // Adds a program, or its plans on a device.
  void keep(std::string_view pattern, const std::shared_ptr<const Program>& program,
            std::shared_ptr<const ProgramPlans> plans = nullptr) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const Programs>& known = programs_.try_emplace(std::string(pattern)).first->second;
    auto changed =
        known ? std::make_shared<Programs>(*known) : std::make_shared<Programs>();  // others read `known`
    auto at = std::ranges::find(*changed, program, &KnownProgram::program);
    if (at == changed->end()) {
      if (changed->size() >= kMostPrograms) changed->erase(changed->begin());
      at = changed->insert(changed->end(), {program, {}});
    }
    if (plans) {
      std::erase_if(at->plans, [&](const auto& p) { return p->device == plans->device; });
      at->plans.push_back(std::move(plans));
    }
    known = std::move(changed);
  }

 private:
  static constexpr size_t kMostPrograms = 64;  // of one pattern; only a decomposition that fixes its sizes has many
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Programs>, Hash, std::equal_to<>> programs_;
};

namespace {
Decompositions& decompositions_of(const Op& op) {
  OpPlans& plans = *op.plans.load(std::memory_order_acquire);  // the call has a plan
  if (Decompositions* known = plans.decompositions.load(std::memory_order_acquire)) return *known;
  static std::mutex mutex;
  static auto& all = *new std::vector<std::unique_ptr<Decompositions>>;
  const std::lock_guard lock(mutex);
  if (!plans.decompositions.load(std::memory_order_relaxed))
    plans.decompositions.store(all.emplace_back(std::make_unique<Decompositions>()).get(),
                               std::memory_order_release);
  return *plans.decompositions.load(std::memory_order_relaxed);
}

// What an executable depends on, as bytes; without an allocation where they are few.
class Key {
 public:
  void add(const void* data, size_t n) {
    if (size_ + n > sizeof few_) [[unlikely]]
      return add_to_many(data, n);
    std::copy_n(static_cast<const char*>(data), n, few_ + size_);
    size_ += n;
  }
  template <class T>
  void add(const T& value) {
    add(&value, sizeof value);
  }
  std::string_view view() const { return many_.empty() ? std::string_view(few_, size_) : many_; }

 private:
  void add_to_many(const void* data, size_t n) {
    if (many_.empty()) many_.assign(few_, size_);
    many_.append(static_cast<const char*>(data), n);
    size_ = sizeof few_ + 1;  // what follows comes here, too
  }
  char few_[512];
  size_t size_ = 0;
  std::string many_;
};

// What a decomposition may look at without a guard: dtypes, ranks, and attributes that are no numbers.
void add_pattern(Key& key, const Invocation& inv) {
  key.add(inv.n_in);
  for (int i = 0; i < inv.n_in; ++i) {
    const Tensor* t = inv.in[i];
    const uint8_t operand[] = {uint8_t(t ? t->dtype : DType::none), uint8_t(t ? t->rank() : -1),
                               uint8_t(t ? inv.plan->compute_of(i) : DType::none)};
    key.add(operand);
  }
  for (int i = 0; i < inv.op.n_attr; ++i) {
    const dvt_attr& a = inv.attrs.at[i];
    key.add(a.kind), key.add(a.count);
    if (a.kind == DVT_A_F64S) key.add(a.v.fs, sizeof(double) * a.count);
    else if (a.kind == DVT_A_STR) key.add(a.v.s, a.count);
    else if (a.kind == DVT_A_DTYPE) key.add(a.v.dt);
    else if (a.kind == DVT_A_BOOL || a.kind == DVT_A_U64) key.add(a.v.raw);
  }
}

// The sizes and numbers, which guards are about; and the device.
void add_sizes(Key& key, const Invocation& inv) {
  key.add(inv.device->index);
  for (int i = 0; i < inv.n_in; ++i)
    if (const Tensor* t = inv.in[i]) {
      key.add(t->device ? 'a' : 's');
      key.add(t->dims, sizeof(int64_t) * size_t(t->rank()));
    }
  for (int i = 0; i < inv.op.n_attr; ++i) {
    const dvt_attr& a = inv.attrs.at[i];
    if (a.kind == DVT_A_I64S) key.add(a.v.is, sizeof(int64_t) * a.count);
    else if (a.kind == DVT_A_I64 || a.kind == DVT_A_F64) key.add(a.v.raw);
  }
}

// Decompositions are other people's: what follows relies on the rule's shapes.
void check_outputs(const Invocation& inv, const Binding& b) {
  const Program& p = *b.program;
  for (size_t i = 0; i < p.outputs.size(); ++i)
    if (const TensorType& made = b.values[size_t(p.outputs[i])]; !made.same_shape(*inv.out[i]))
      inv.fail(ErrorKind::runtime, "its decomposition gives shape " + to_string(made.shape()) +
                                       ", its shape rule says " + to_string(inv.out[i]->shape()));
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
      for (const DType t : casts_of(inv, i)) operands[size_t(i)] = builder->cast(operands[size_t(i)], t);
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
  explicit GivenOperands(const Invocation& inv) : in_(size_t(inv.n_in)) {
    std::copy_if(inv.in, inv.in + inv.n_in, in_.data(), [](const Tensor* t) { return t != nullptr; });
  }
  const T* const* data() const { return in_.data(); }

 private:
  Few<const T*, kMaxInputs> in_;
};

std::optional<Binding> bind_call(const Invocation& inv, const std::shared_ptr<const Program>& program,
                                 const ProgramPlans* plans) {
  return bind_program(program, GivenOperands<TensorType>(inv).data(), &inv.attrs,
                      plans ? plans->dtypes.data() : nullptr);
}

// Of these programs the one for the sizes of the call, with casts around it; nullptr where there is none.
std::shared_ptr<const Program> first_that_binds(const Invocation& inv,
                                                std::span<const std::shared_ptr<const Program>> candidates) {
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
    if (program->inputs.size() != given.size() || program->outputs.size() != inv.op.spec.n_out) continue;
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

struct BoundCall {
  std::shared_ptr<const Program> program;     // as it was traced
  Binding binding;                            // of the program, or of the one that `plans` are of
  std::shared_ptr<const ProgramPlans> plans;  // nullptr: none are known yet
};

BoundCall bound(const Invocation& inv, Decompositions& known, std::string_view pattern) {
  const auto programs = known.programs_for(pattern);
  for (const KnownProgram& p : *programs) {
    auto plans = p.plans_on(*inv.device);
    if (auto binding = bind_call(inv, plans ? plans->program : p.program, plans.get()))
      return {p.program, std::move(*binding), std::move(plans)};
  }
  std::shared_ptr<const Program> program = first_that_binds(inv, shipped_for(inv));
  bool is_brought = false;
  if (!program && !decomposition_tracer) {
    program = first_that_binds(inv, brought_for(inv));
    is_brought = program != nullptr;
  }
  if (!program) program = trace_decomposition(inv);
  auto binding = bind_call(inv, program, nullptr);
  if (!binding) inv.fail(ErrorKind::runtime, "its decomposition gave another program for the same sizes");
  if (is_brought) note_use_of_brought();
  else known.keep(pattern, program);
  return {program, std::move(*binding), nullptr};
}

// The plans of the call's program or, where the device has a compiler, of the program as that likes it.
void plan(const Invocation& inv, BoundCall& call) {
  std::shared_ptr<Fusions> fusions;
  if (compiler_of(*inv.device) && call.program->programs.empty()) {
    const Lowered lowered = lower(call.program, GivenOperands<TensorType>(inv).data(), inv.attrs, *inv.device);
    if (auto binding = bind_call(inv, lowered.program, nullptr)) call.binding = std::move(*binding);
    fusions = std::make_shared<Fusions>();
  }
  call.plans = plan_program(call.binding, *inv.device, std::move(fusions));
}

// Small arrays run node by node: a first call with their sizes is to cost little more than the next one.
std::shared_ptr<const Fusion> fusion_for(const Invocation& inv, const BoundCall& call) {
  constexpr uint64_t kFewElements = 1 << 15;
  if (!call.plans->fusions) return nullptr;
  uint64_t most = 0;
  for (const TensorType& t : call.binding.values) most = std::max(most, t.numel);
  if (most < kFewElements) return nullptr;
  return call.plans->fusions->find_or_make(call.binding, *inv.device, &inv.attrs,
                                           DVT_P_DETERMINISTIC | DVT_P_ROUND_EACH);
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

// Decompositions within decompositions; those of a file may have no end.
class Nesting {
 public:
  explicit Nesting(const Invocation& inv) {
    if (depth_ == kMost)
      inv.fail(ErrorKind::value, "more than " + std::to_string(kMost) +
                                     " decompositions within decompositions: do those of its file lead to itself?");
    ++depth_;
  }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;

 private:
  static constexpr int kMost = 64;
  static thread_local int depth_;
};
thread_local int Nesting::depth_ = 0;

std::shared_ptr<const Executable> decomposition_of(const Invocation& inv) {
  Decompositions& known = decompositions_of(inv.op);
  Key key;
  add_pattern(key, inv);
  const size_t n = key.view().size();
  add_sizes(key, inv);
  if (auto found = known.executables.find(key.view())) return found;
  const std::string_view pattern = key.view().substr(0, n);
  const Nesting nesting(inv);
  const uint64_t uses = uses_of_brought();
  BoundCall call = bound(inv, known, pattern);
  check_outputs(inv, call.binding);
  if (!call.plans) {
    plan(inv, call);
    if (uses == uses_of_brought()) known.keep(pattern, call.program, call.plans);
  }
  auto fusion = fusion_for(inv, call);
  auto made = make_executable(std::move(call.binding), std::move(call.plans), {}, std::move(fusion));
  if (uses == uses_of_brought()) known.executables.keep(key.view(), made);  // else it is for one program
  return made;
}

static void add_ops(const Program& p, std::vector<const Op*>& ops) {
  for (const Program::Node& node : p.nodes)
    if (!(node.op->spec.flags & op_control)) ops.push_back(node.op);
  for (const auto& part : p.programs) add_ops(*part, ops);
}

std::vector<const Op*> decomposition_ops(const Invocation& inv) {
  Key key;
  add_pattern(key, inv);
  std::vector<const Op*> ops;
  add_ops(*bound(inv, decompositions_of(inv.op), key.view()).program, ops);
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
  casts.reserve(2 * size_t(inv.n_in));
  std::vector<const Tensor*> in;
  for (int i = 0; i < inv.n_in; ++i) {
    const Tensor* t = inv.in[i];
    if (t)
      for (const DType want : casts_of(inv, i))
        if (t->dtype != want) t = &casts.emplace_back(cast(*t, want, *inv.device));
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
}  // namespace dovetail
