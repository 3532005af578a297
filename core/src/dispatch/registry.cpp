// Ops by name, kernel rows by device and name, and the plans made from both.
#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "dispatch/execute.hpp"
#include "dispatch/packed.hpp"
#include "platform/platform.hpp"
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
struct Registry {
  std::mutex mutex;
  std::deque<Op> ops;
  std::unordered_map<std::string, Op*> by_name;
  // Rows by device and kernel name; those added at run time come first.
  std::map<std::pair<int, std::string>, std::vector<const dvt_kernel*>> added;
  std::unordered_map<const Backend*, std::unordered_map<std::string, std::vector<const dvt_kernel*>>> rows;
};

std::mutex plan_mutex;

void add(Registry&, OpSpec);
void before_fork();
void after_fork();

Registry& registry() {
  static Registry* const r = [] {  // never destroyed: plans are used until the process ends
    auto* made = new Registry;
    for (const OpSpec& spec : builtin_ops()) add(*made, spec);
    platform::at_fork(before_fork, after_fork, after_fork);
    return made;
  }();
  return *r;
}

// Nobody else holds the locks while the process forks: the child could never take them.
void before_fork() { plan_mutex.lock(), registry().mutex.lock(); }
void after_fork() { registry().mutex.unlock(), plan_mutex.unlock(); }

[[noreturn]] void refuse(const OpSpec& spec, const std::string& why) {
  throw Error(ErrorKind::value, "[register_op] op '" + spec.name + "': " + why);
}

void check_params(const OpSpec& spec, Op& op) {
  uint32_t newest = 1;  // version of the operands so far
  for (const ParamSpec& p : spec.params) {
    if (p.name.empty()) refuse(spec, "a parameter has no name");
    if (std::count_if(spec.params.begin(), spec.params.end(), [&](auto& q) { return q.name == p.name; }) > 1)
      refuse(spec, "two parameters are called '" + p.name + "'");
    if (p.since > spec.version)
      refuse(spec, "'" + p.name + "' is since version " + std::to_string(p.since) +
                       ": expected at most the op's, " + std::to_string(spec.version));
    if (is_operand(p.kind)) {
      if (p.since > 1 && !p.optional)
        refuse(spec, "'" + p.name + "' is newer than the op: expected it to be optional, for kernels without it");
      if (p.since < newest)
        refuse(spec, "'" + p.name + "' follows an operand of a newer version: expected operands by version");
      newest = p.since;
      if (op.variadic) refuse(spec, "'" + p.name + "' follows a variadic operand, which must be the last");
      if (op.n_in == kMaxInputs) refuse(spec, "more than " + std::to_string(kMaxInputs) + " operands");
      op.operand_kinds[op.n_in++] = p.kind;
      op.variadic = p.variadic;
      if (p.variadic && p.kind != ParamKind::value)
        refuse(spec, "'" + p.name + "' is variadic: expected an operand of kind value");
    } else {
      if (p.since > 1 && p.fallback.kind == AttrDefault::required)
        refuse(spec, "'" + p.name + "' is newer than the op: expected a default, for kernels that do not know it");
      if (p.kind == ParamKind::dtype) op.dtype_attr = op.n_attr;
      op.keyed_by_attrs |= p.kind == ParamKind::dtype || p.kind == ParamKind::scalar;
      op.n_attr += 1;
    }
  }
  if (op.n_attr > kMaxAttrs) refuse(spec, "more than " + std::to_string(kMaxAttrs) + " attributes");
  if (spec.n_out < 1 || spec.n_out > kMaxOutputs) refuse(spec, "1 to " + std::to_string(kMaxOutputs) + " outputs");
}

void find_rules(const OpSpec& spec, Op& op) {
  try {
    const rules::NamedShapeRule& shape = rules::shape_rule(spec.shape);
    op.shape = shape.rule;
    op.elementwise = shape.elementwise;
    op.dtype = rules::dtype_rule(spec.dtype).rule;
    if (spec.flags & op_view) rules::view(spec.name);
  } catch (const Error& e) {
    refuse(spec, e.what());
  }
}

void add(Registry& r, OpSpec spec) {
  if (spec.name.empty()) refuse(spec, "has no name");
  if (r.by_name.count(spec.name))
    refuse(spec, "is registered already: choose a name with your own prefix, as 'acme.foo'");
  Op& op = r.ops.emplace_back();
  try {
    check_params(spec, op);
    find_rules(spec, op);
  } catch (...) {
    r.ops.pop_back();
    throw;
  }
  op.kernel_name = spec.name.find('.') == std::string::npos ? "dvt." + spec.name : spec.name;
  op.id = int(r.ops.size()) - 1;
  op.spec = std::move(spec);
  r.by_name[op.spec.name] = &op;
}
}  // namespace

Op& register_op(OpSpec spec) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const std::string name = spec.name;
  add(r, std::move(spec));
  return *r.by_name.at(name);
}

const Op* find_op(const std::string& name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto found = r.by_name.find(name);
  return found == r.by_name.end() ? nullptr : found->second;
}

const Op& op(const std::string& name) {
  if (const Op* found = find_op(name)) return *found;
  std::vector<std::string> known;
  for (const Op* o : all_ops()) known.push_back(o->spec.name);
  throw Error(ErrorKind::value, "there is no op '" + name + "'" + did_you_mean(name, known));
}

uint32_t operands_of(const Op& op, uint32_t version) {
  return uint32_t(std::ranges::count_if(
      op.spec.params, [&](const ParamSpec& p) { return is_operand(p.kind) && p.since <= version; }));
}

std::vector<const Op*> all_ops() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::vector<const Op*> ops;
  for (const Op& o : r.ops) ops.push_back(&o);
  return ops;
}

std::vector<const dvt_kernel*> kernel_rows(const Device& device, const std::string& name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto [entry, fresh] = r.rows.try_emplace(device.backend);
  if (fresh)
    for (uint64_t i = 0; i < device.backend->table->n_kernels; ++i) {
      const dvt_kernel* row = device.backend->table->kernels[i];
      entry->second[row->op].push_back(row);
    }
  std::vector<const dvt_kernel*> rows;
  if (auto own = r.added.find({device.index, name}); own != r.added.end()) rows = own->second;
  if (auto own = entry->second.find(name); own != entry->second.end())
    rows.insert(rows.end(), own->second.begin(), own->second.end());
  return rows;
}

void check_row(const dvt_kernel& row, const Device& device) {
  const auto refuse = [&](const std::string& why) {
    const std::string name = row.op, prefix = "dvt.";
    throw Error(
        ErrorKind::runtime,
        "[" + (name.rfind(prefix, 0) ? name : name.substr(prefix.size())) + "] " + device.name + "'s kernel " + why,
        "this is an error in the plugin: report it to its author");
  };
  for (uint32_t i = 0; i < row.n_in + row.n_out; ++i)
    if (const uint64_t bytes = uint64_t{1} << row.operands[i].align_log2; bytes > device.props.alloc_align)
      refuse("wants operands aligned to " + std::to_string(bytes) + " bytes: expected at most alloc_align, " +
             std::to_string(device.props.alloc_align));
  if (row.op != std::string_view("dvt.copy")) return;  // by which the host makes operands compact and aligned
  if (!(row.operands[0].flags & DVT_O_STRIDED)) refuse("does not take strided operands: expected DVT_O_STRIDED");
  if (row.operands[0].align_log2) refuse("wants an aligned operand: expected it to take any");
}

void add_kernels(Device& device, std::span<const dvt_kernel* const> added) {
  {
    Registry& r = registry();
    std::lock_guard lock(r.mutex);
    for (size_t i = added.size(); i-- > 0;) {
      auto& rows = r.added[{device.index, added[i]->op}];
      rows.insert(rows.begin(), added[i]);
    }
  }
  forget_plans();
}

std::vector<const dvt_kernel*> kernel_table(const Device& device) {
  std::vector<const dvt_kernel*> table;
  {
    Registry& r = registry();
    std::lock_guard lock(r.mutex);
    for (const auto& [key, rows] : r.added)
      if (key.first == device.index) table.insert(table.end(), rows.begin(), rows.end());
  }
  const dvt_backend& own = *device.backend->table;
  table.insert(table.end(), own.kernels, own.kernels + own.n_kernels);
  return table;
}

// ---- plans ------------------------------------------------------------------------------------------------------
namespace {
std::atomic<uint64_t> plans_forgotten{0};  // how often; changed with plan_mutex held

bool matches(DLDataType row, DType t) {
  const DLDataType dl = info(t).dl;
  return row == dl || (row.code == DVT_ANY && (row.bits == 0 || row.bits == dl.bits));
}

// Does the row take operands of the plan's dtypes? Operands not given match any.
bool serves(const dvt_kernel& row, const Op& op, const Plan& plan, uint64_t given) {
  const uint32_t n_out = op.spec.n_out, n_in = operands_of(op, row.op_version);
  if (row.op_version > op.spec.version || row.n_in != n_in || row.n_out != n_out) return false;
  if (given >> n_in && !op.variadic) return false;  // an operand that is newer than the row
  if (op.variadic && !(row.operands[n_in - 1].flags & DVT_O_VARIADIC)) return false;
  for (uint32_t i = 0; i < n_in; ++i)
    if (given >> i & 1 ? !matches(row.operands[i].dtype, plan.compute[i])
                       : !(row.operands[i].flags & DVT_O_OPTIONAL))
      return false;
  for (uint32_t i = 0; i < n_out; ++i)
    if (!matches(row.operands[n_in + i].dtype, plan.result[i])) return false;
  return true;
}

[[noreturn]] void unsupported(const Op& op, const Device& device, const Plan& plan, uint64_t given) {
  std::string what = dtype_list(plan, given, op.n_in);
  if (op.n_in && op.dtype_attr >= 0 && plan.result[0] != plan.compute[0])
    what += std::string(" to ") + info(plan.result[0]).name;
  std::string why = "[" + op.spec.name + "] " + what + " is not supported on " + device.name +
                    ": the device has no kernel for it and the op has no decomposition";
  if (what.find("complex") != std::string::npos) why += "; NumPy has complex arithmetic: x.numpy()";
  else if (device.props.kind != DVT_KIND_CPU)
    why += fallback() == Fallback::allow
               ? "; no cpu device is installed that could run it, .astype() changes the dtype"
               : "; dovetail.fallback('allow') runs it on another device of the host, .astype() changes the dtype";
  throw Error(ErrorKind::not_implemented, why);
}

// astype from or to a float of 8 bits: by way of float32 it is rounded once, as what float32 does not hold exactly
// is too large for those, but for float64.
bool converts_through_f32(const Op& op, const Plan& plan) {
  const DType from = plan.compute[0], to = plan.result[0];
  return op.spec.name == "astype" && from != DType::f32 && to != DType::f32 && !is_complex(from) &&
         !is_complex(to) && (is_float8(to) ? from != DType::f64 : is_float8(from));
}

// How an op runs by itself where no row serves it; Plan::kernel: not at all.
Plan::Mode mode_of_decomposition(const Op& op, const Plan& plan) {
  if (converts_through_f32(op, plan)) return Plan::via_f32;
  if (op.spec.name == "floor" && is_integer(plan.compute[0])) return Plan::identity;
  if (op.spec.flags & op_has_decomposition) return plan.wide ? Plan::via_f32 : Plan::decomposition;
  const bool half = std::any_of(plan.compute, plan.compute + op.n_in,
                                [](DType t) { return t != DType::none && is_narrow_float(t); }) ||
                    is_narrow_float(plan.result[0]);
  return half && op.spec.flags & op_half_in_f32 ? Plan::via_f32 : Plan::kernel;
}

bool required(const Op& op, int attr) {
  for (const ParamSpec& p : op.spec.params)
    if (!is_operand(p.kind) && attr-- == 0) return p.fallback.kind == AttrDefault::required;
  return false;
}

bool has_wide_row(const Op& op, std::span<const dvt_kernel* const> rows, const Plan& plan, uint64_t given) {
  if (!(op.spec.flags & op_half_in_f32)) return false;
  Plan wide{};
  std::copy_n(plan.compute, kMaxInputs, wide.compute);
  std::copy_n(plan.result, op.spec.n_out, wide.result);
  bool narrow = false;
  const auto widen = [&](DType& t) {
    if (t != DType::none && is_narrow_float(t)) t = DType::f32, narrow = true;
  };
  std::for_each(wide.compute, wide.compute + kMaxInputs, widen);
  std::for_each(wide.result, wide.result + op.spec.n_out, widen);
  return narrow && std::any_of(rows.begin(), rows.end(),
                               [&](const dvt_kernel* row) { return serves(*row, op, wide, given); });
}

// Fills in the rows that serve the plan. Plan::kernel without any row: the op does not run on the device by itself.
Plan::Mode mode_on(const Op& op, const Device& device, Plan& plan, uint64_t given) {
  if (op.spec.name == "set_slice") return Plan::set_slice;
  if (op.spec.flags & op_view) return Plan::view;
  const std::vector<const dvt_kernel*> rows = kernel_rows(device, op.kernel_name);
  for (const dvt_kernel* row : rows) {
    if (!serves(*row, op, plan, given)) continue;
    check_row(*row, device);
    plan.rows.push_back(row);
  }
  plan.wide = has_wide_row(op, rows, plan, given);
  return plan.rows.empty() ? mode_of_decomposition(op, plan) : Plan::kernel;
}

Plan::Mode choose_mode(const Op& op, const Device& device, Plan& plan, uint64_t given) {
  Plan::Mode mode = mode_on(op, device, plan, given);
  if (mode == Plan::kernel && plan.rows.empty()) mode = mode_without_rows(op, device, plan);
  if (mode == Plan::kernel && plan.rows.empty()) unsupported(op, device, plan, given);
  return mode;
}

void log_plan(const Op& op, const Device& device, const Plan& plan, uint64_t given) {
  static const char* const modes[] = {"kernel",          "view",          "set_slice", "identity", "decomposition",
                                      "through float32", "another device"};
  std::string engines;
  for (size_t i = 0; i < plan.rows.size(); ++i)
    if (const auto engine = engine_of(*plan.rows[i]); !i || engine != engine_of(*plan.rows[i - 1]))
      engines += (i ? ", " : " ") + std::string(engine);
  log(Log::dispatch, 2,
      op.spec.name + "(" + dtype_list(plan, given, op.n_in) + ") on " + device.name + ": " + modes[plan.mode] +
          engines);
}
}  // namespace

std::string dtype_list(const Plan& plan, uint64_t given, int n_in) {
  std::string text;
  for (int i = 0; i < n_in; ++i)
    if (given >> i & 1) text += (text.empty() ? "" : ", ") + std::string(info(plan.compute[i]).name);
  return text.empty() ? info(plan.result[0]).name : text;
}

Plan::Mode mode_without_rows(const Op& op, const Device& device, const Plan& plan) {
  const Plan::Mode mode = mode_of_decomposition(op, plan);
  const bool elsewhere = mode == Plan::kernel && fallback() != Fallback::error && host_device(device);
  return elsewhere ? Plan::host_fallback : mode;
}

static std::optional<Support> better(const std::optional<Support>& a, const std::optional<Support>& b) {
  return a && (!b || a->mode <= b->mode) ? a : b;
}

static std::optional<Support> support_with(const Op& op, const Device& device, DType t, DType of_raw) {
  Tensor operand, mask, index, raw;
  operand.set_type(t, nullptr), mask.set_type(DType::b8, nullptr), index.set_type(DType::i64, nullptr);
  raw.set_type(of_raw, nullptr);
  const Tensor* in[kMaxInputs] = {};
  int n_in = 0, first_value = -1;
  for (const ParamSpec& p : op.spec.params) {
    if (!is_operand(p.kind)) continue;
    if (p.kind == ParamKind::value && first_value < 0) first_value = n_in;
    const Tensor* of_kind[] = {&operand, &mask, &index, &raw};
    in[n_in++] = p.optional ? nullptr : of_kind[int(p.kind)];
  }
  Attrs attrs = default_attrs(op);
  const auto with = [&](DType result) -> std::optional<Support> {
    if (result != DType::none) attrs.at[op.dtype_attr] = {DVT_A_DTYPE, 1, {.dt = info(result).dl}};
    Plan plan;
    const Invocation inv{.op = op, .device = nullptr, .in = in, .n_in = n_in, .attrs = attrs};
    try {
      const uint64_t given = rules::infer_dtypes(inv, plan.compute, plan.result);
      if (first_value < 0 && plan.result[0] != t) return {};
      const Plan::Mode mode = mode_on(op, device, plan, given);
      const bool alone = mode != Plan::kernel || !plan.rows.empty();
      if (mode != Plan::via_f32)
        return Support{alone ? mode : Plan::host_fallback, first_value >= 0 && plan.compute[first_value] != t};
    } catch (const Error&) {
      return {};
    }
    const auto wide = support(op, device, DType::f32);
    return Support{wide && wide->mode == Plan::kernel ? Plan::via_f32 : Plan::host_fallback, false};
  };
  if (op.dtype_attr < 0) return with(DType::none);
  if (first_value < 0) return with(t);
  if (!required(op, op.dtype_attr)) return with(DType::none);
  std::optional<Support> best;  // one of the results that may be asked for
  for (int result = 0; result < kDTypes; ++result) best = better(best, with(DType(result)));
  return best;
}

std::optional<Support> support(const Op& op, const Device& device, DType t) {
  std::optional<Support> best;  // one of the dtypes that raw operands may have
  for (int raw = 0; raw < kDTypes; ++raw) best = better(best, support_with(op, device, t, DType(raw)));
  return best;
}

const Plan& Op::make_plan(const Device& device, uint64_t key, const Invocation& call) const {
  for (;;) {
    const uint64_t before = plans_forgotten.load(std::memory_order_acquire);
    auto plan = std::make_unique<Plan>();
    plan->key = key;
    const uint64_t given = rules::infer_dtypes(call, plan->compute, plan->result);
    plan->mode = choose_mode(*this, device, *plan, given);
    plan->simple = plan->rows.size() == 1 && !variadic && plan->rows[0]->op_version == spec.version &&
                   !DVT_HAS(plan->rows[0], dvt_kernel, query) && !packs_operands(*plan->rows[0]);
    std::lock_guard lock(plan_mutex);
    if (plans_forgotten.load(std::memory_order_relaxed) != before) continue;  // made of what was true before
    if (logs(Log::dispatch)) log_plan(*this, device, *plan, given);
    return keep_plan(device, std::move(plan));
  }
}

// With the lock held. A table that is nearly full is started anew; plans are never freed, as other threads may be
// using them.
const Plan& Op::keep_plan(const Device& device, std::unique_ptr<Plan> plan) const {
  static auto& tables = *new std::deque<PlanTable>;
  static auto& plans = *new std::deque<std::unique_ptr<const Plan>>;
  PlanTable* table = plans_[device.index].load(std::memory_order_acquire);
  uint64_t used = table ? 0 : kSlots;
  for (uint64_t i = 0; table && i < kSlots; ++i) used += table->slots[i].load(std::memory_order_relaxed) != nullptr;
  if (used > kSlots * 3 / 4) plans_[device.index].store(table = &tables.emplace_back(), std::memory_order_release);
  for (uint64_t i = hash(plan->key);; ++i) {
    std::atomic<const Plan*>& slot = table->slots[i % kSlots];
    const Plan* p = slot.load(std::memory_order_relaxed);
    if (p && p->key == plan->key) return *p;  // another thread was first
    if (p) continue;
    slot.store(plan.get(), std::memory_order_release);
    return *plans.emplace_back(std::move(plan));
  }
}

void Op::drop_plans() const {
  std::lock_guard lock(plan_mutex);
  for (auto& table : plans_) table.store(nullptr, std::memory_order_release);
}

uint64_t plans_epoch() { return plans_forgotten.load(std::memory_order_acquire); }

void forget_plans() {
  {
    std::lock_guard lock(plan_mutex);
    ++plans_forgotten;
  }
  for (const Op* o : all_ops()) o->drop_plans();
}
}  // namespace dovetail
