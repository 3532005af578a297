#include "dispatch/program.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "dispatch/execute.hpp"
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail {
DecompositionTracer decomposition_tracer = nullptr;

Program& ProgramBuilder::program() const {
  if (program_) return *program_;
  throw Error(ErrorKind::runtime, "a traced value is used after the decomposition's end: do not keep it");
}

int ProgramBuilder::input(const Tensor& like, DType dtype) {
  Tensor t;
  t.set_type(dtype, nullptr);
  t.set_shape(like.shape());
  program().values.push_back(std::move(t));
  program().inputs.push_back(int(program().values.size()) - 1);
  return program().inputs.back();
}

int ProgramBuilder::constant(const Tensor& host_scalar) {
  program().values.push_back(host_scalar);
  return int(program().values.size()) - 1;
}

void ProgramBuilder::own(Attrs& attrs) {
  for (dvt_attr& a : attrs.at) {
    if (a.kind == DVT_A_STR) a.v.s = program().strings.emplace_back(a.v.s, a.count).c_str();
    else if (a.kind == DVT_A_F64S) a.v.fs = program().float_lists.emplace_back(a.v.fs, a.v.fs + a.count).data();
    else if (a.kind == DVT_A_I64S && (a.v.is < attrs.ints || a.v.is >= attrs.ints + std::size(attrs.ints)))
      a.v.is = program().int_lists.emplace_back(a.v.is, a.v.is + a.count).data();
  }
}

int ProgramBuilder::call(const Op& op, const std::vector<int>& in, const Attrs& attrs) {
  Program::Node node{.op = &op, .in = in, .out = {}, .attrs = attrs, .dies = {}};
  std::vector<const Tensor*> operands;
  for (int i : in) operands.push_back(i < 0 ? nullptr : &program().values.at(i));
  std::vector<Tensor> made(op.spec.n_out);
  Invocation inv{
      .op = op, .device = nullptr, .in = operands.data(), .n_in = int(operands.size()), .attrs = node.attrs};
  for (size_t i = 0; i < made.size(); ++i) inv.out[i] = &made[i];
  Plan plan;
  inv.infer_abstract(plan);
  own(node.attrs);
  for (Tensor& t : made) {
    node.out.push_back(int(program().values.size()));
    program().values.push_back(std::move(t));
  }
  program().nodes.push_back(std::move(node));
  return program().nodes.back().out[0];
}

// Says for every node which values end with it, and whose memory the result may take.
static void plan_lifetimes(Program& p) {
  std::vector<bool> needed(p.values.size(), false);
  for (int v : p.outputs) needed[v] = true;
  for (int v : p.inputs) needed[v] = true;  // the caller's
  for (auto node = p.nodes.rbegin(); node != p.nodes.rend(); ++node) {
    for (int v : node->in) {
      if (v < 0 || needed[v]) continue;
      needed[v] = true;
      node->dies.push_back(v);
    }
    for (int v : node->out)
      if (!needed[v]) node->dies.push_back(v);  // an output nobody looks at
    const Tensor& out = p.values[node->out[0]];
    for (int v : node->in)
      if (node->donor < 0 && v >= 0 && std::count(node->dies.begin(), node->dies.end(), v) &&
          p.values[v].dtype == out.dtype && p.values[v].same_shape(out))
        node->donor = v;
  }
}

std::shared_ptr<const Program> ProgramBuilder::finish(const std::vector<int>& outputs) {
  program_->outputs = outputs;
  plan_lifetimes(*program_);
  return std::move(program_);
}

namespace {
void replay_node(const Program::Node& node, std::vector<Tensor>& values, Device& device) {
  const Tensor* few[kMaxInputs];
  std::vector<const Tensor*> many;
  const Tensor** in = few;
  if (node.in.size() > kMaxInputs) many.resize(node.in.size()), in = many.data();
  for (size_t i = 0; i < node.in.size(); ++i) in[i] = node.in[i] < 0 ? nullptr : &values[node.in[i]];
  Attrs attrs = node.attrs;
  Tensor made[kMaxOutputs];
  Invocation inv{.op = *node.op, .device = &device, .in = in, .n_in = int(node.in.size()), .attrs = attrs};
  for (size_t i = 0; i < node.out.size(); ++i) inv.out[i] = &made[i];
  if (node.donor >= 0) inv.replaced = &values[node.donor];
  inv.infer();
  inv.run();
  for (size_t i = 0; i < node.out.size(); ++i) values[node.out[i]] = std::move(made[i]);
  for (int v : node.dies) values[v] = Tensor();
}
}  // namespace

void replay(const Program& p, const Tensor* const* in, Tensor* const* out, Device& device) {
  std::vector<Tensor> values(p.values.size());
  for (size_t i = 0; i < p.inputs.size(); ++i) values[p.inputs[i]] = *in[i];
  for (size_t i = 0; i < values.size(); ++i)
    if (p.values[i].view.data) values[i] = p.values[i];  // a constant
  for (const Program::Node& node : p.nodes) replay_node(node, values, device);
  for (size_t i = 0; i < p.outputs.size(); ++i) *out[i] = values[p.outputs[i]];
}

// ---- programs by signature --------------------------------------------------------------------------------------
namespace {
struct Cache {
  static constexpr size_t kMost = 1024;  // signatures of one op
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const Program>> programs;
};

Cache& cache_of(const Op& op) {
  static std::mutex mutex;
  static auto& caches = *new std::unordered_map<const Op*, std::unique_ptr<Cache>>;
  std::lock_guard lock(mutex);
  auto& cache = caches[&op];
  if (!cache) cache = std::make_unique<Cache>();
  return *cache;
}

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Everything that a decomposition may look at: dtypes, shapes, attributes.
std::string signature(const Invocation& inv, const DType* dtypes) {
  std::string key;
  append(key, inv.n_in);
  for (int i = 0; i < inv.n_in; ++i) {
    const Tensor* t = inv.in[i];
    key.push_back(char(t ? dtypes[i] : DType::none));
    key.push_back(char(t ? t->rank() : -1));
    if (t) key.append(reinterpret_cast<const char*>(t->dims), sizeof(int64_t) * t->rank());
  }
  for (int i = 0; i < inv.op.n_attr; ++i) {
    const dvt_attr& a = inv.attrs.at[i];
    append(key, a.kind), append(key, a.count);
    if (a.kind == DVT_A_I64S) key.append(reinterpret_cast<const char*>(a.v.is), sizeof(int64_t) * a.count);
    else if (a.kind == DVT_A_F64S) key.append(reinterpret_cast<const char*>(a.v.fs), sizeof(double) * a.count);
    else if (a.kind == DVT_A_STR) key.append(a.v.s, a.count);
    else if (a.kind == DVT_A_DTYPE) append(key, a.v.dt);
    else if (a.kind == DVT_A_NONE) continue;
    else append(key, a.v.raw);
  }
  return key;
}

// Decompositions are other people's: what follows relies on the rule's shapes.
void check_outputs(const Invocation& inv, const Program& p) {
  if (p.outputs.size() != inv.op.spec.n_out)
    inv.fail(ErrorKind::runtime, "its decomposition gives " + std::to_string(p.outputs.size()) +
                                     " arrays: expected " + std::to_string(inv.op.spec.n_out));
  for (size_t i = 0; i < p.outputs.size(); ++i)
    if (const Tensor& made = p.values.at(p.outputs[i]); !made.same_shape(*inv.out[i]))
      inv.fail(ErrorKind::runtime, "its decomposition gives shape " + to_string(made.shape()) +
                                       ", its shape rule says " + to_string(inv.out[i]->shape()));
}

std::shared_ptr<const Program> program_for(const Invocation& inv, const DType* dtypes) {
  Cache& cache = cache_of(inv.op);
  std::string key = signature(inv, dtypes);
  {
    std::lock_guard lock(cache.mutex);
    if (auto found = cache.programs.find(key); found != cache.programs.end()) return found->second;
  }
  if (!decomposition_tracer)
    inv.fail(ErrorKind::not_implemented, "has no kernel, and its decomposition needs the Python front end");
  std::shared_ptr<const Program> made = decomposition_tracer(inv, dtypes);  // takes the GIL: no lock is held
  check_outputs(inv, *made);
  std::lock_guard lock(cache.mutex);
  if (cache.programs.size() >= Cache::kMost) cache.programs.clear();
  return cache.programs.try_emplace(std::move(key), std::move(made)).first->second;
}

DType working(DType t, const Op& op) {
  return t != DType::none && is_narrow_float(t) && op.spec.flags & op_half_in_f32 ? DType::f32 : t;
}
}  // namespace

void run_decomposition(Invocation& inv) {
  std::vector<DType> dtypes(inv.n_in, DType::none);
  std::vector<Tensor> casts;
  casts.reserve(inv.n_in);
  std::vector<const Tensor*> in, given;
  for (int i = 0; i < inv.n_in; ++i) {
    const Tensor* t = inv.in[i];
    if (t) {
      dtypes[i] = working(inv.plan->compute_of(i), inv.op);
      if (t->dtype != dtypes[i]) t = &casts.emplace_back(cast(*t, dtypes[i], *inv.device));
      given.push_back(t);
    }
    in.push_back(t);
  }
  Invocation traced = inv;
  traced.in = in.data();
  std::shared_ptr<const Program> program;
  try {
    program = program_for(traced, dtypes.data());
    replay(*program, given.data(), inv.out, *inv.device);
  } catch (const Error& e) {
    if (e.kind != ErrorKind::not_implemented) throw;
    if (!program) throw;
    throw Error(e.kind, "[" + inv.op.spec.name + "] its decomposition: " + e.what());
  }
  for (uint32_t i = 0; i < inv.op.spec.n_out; ++i) {
    Tensor& out = *inv.out[i];
    if (!out.device) out = materialise(out, *inv.device);  // a constant
    if (out.dtype == inv.plan->result[i]) continue;
    if (!is_narrow_float(inv.plan->result[i]))
      inv.fail(ErrorKind::runtime, std::string("its decomposition gives ") + info(out.dtype).name +
                                       ", its dtype rule says " + info(inv.plan->result[i]).name);
    out = cast(out, inv.plan->result[i], *inv.device);
  }
}

// A primitive that the device has in float32: operands up, result down.
void run_via_f32(Invocation& inv) {
  if (inv.op.spec.flags & op_converts) {
    *inv.out[0] = cast(cast(*inv.in[0], DType::f32, *inv.device), inv.plan->result[0], *inv.device);
    return;
  }
  std::vector<Tensor> casts;
  casts.reserve(inv.n_in);
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

// ---- whether a decomposition can run ----------------------------------------------------------------------------
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

// A value without memory, as rules take it.
Tensor on_device(const Tensor& like, DType dtype, Device& device) {
  Tensor t;
  t.set_type(dtype, &device);
  t.set_shape(like.shape());
  return t;
}

std::string missing_in(const Program& p, Device& device) {
  std::vector<Tensor> values;
  for (const Tensor& v : p.values) values.push_back(v.view.data ? v : on_device(v, v.dtype, device));
  std::string missing;
  for (const Program::Node& node : p.nodes) {
    std::vector<const Tensor*> in;
    for (int i : node.in) in.push_back(i < 0 ? nullptr : &values[size_t(i)]);
    if (missing = missing_for(*node.op, in, node.attrs, device); !missing.empty()) break;
  }
  return missing;
}
}  // namespace

std::string missing_kernel(const Invocation& inv) {
  const Plan::Mode mode = inv.plan->mode;
  uint64_t given = 0;
  for (int i = 0; i < inv.n_in; ++i) given |= uint64_t{inv.has(i)} << i;
  if (mode == Plan::host_fallback)
    return "[" + inv.op.spec.name + "] no kernel for " + dtype_list(*inv.plan, given, inv.n_in);
  if (mode != Plan::decomposition && mode != Plan::via_f32) return {};
  if (inv.op.spec.flags & op_converts) return missing_cast(*inv.in[0], DType::f32, *inv.device);
  std::vector<Tensor> operands(size_t(inv.n_in));
  std::vector<DType> dtypes(size_t(inv.n_in), DType::none);
  std::vector<const Tensor*> in(size_t(inv.n_in), nullptr);
  for (size_t i = 0; i < in.size(); ++i) {
    const Tensor* t = inv.in[i];
    if (!t) continue;
    dtypes[i] = working(inv.plan->compute_of(int(i)), inv.op);
    if (const std::string missing = missing_cast(*t, dtypes[i], *inv.device); !missing.empty()) return missing;
    operands[i] = on_device(*t, dtypes[i], *inv.device);
    in[i] = &operands[i];
  }
  if (mode == Plan::decomposition) {
    Invocation traced = inv;
    traced.in = in.data();
    return missing_in(*program_for(traced, dtypes.data()), *inv.device);
  }
  Attrs attrs = inv.attrs;
  if (inv.op.dtype_attr >= 0 && attrs.given(inv.op.dtype_attr))
    attrs.at[inv.op.dtype_attr].v.dt = info(working(attrs.dtype(inv.op.dtype_attr), inv.op)).dl;
  return missing_for(inv.op, in, attrs, *inv.device);
}
}  // namespace dovetail
