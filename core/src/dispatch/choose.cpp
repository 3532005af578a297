// The ways to run an op on a device, in the order in which a call tries them: the rows of the device's kernel
// table, the op's decomposition, a wider float, another device of the host.
#include <algorithm>

#include "dispatch/execute.hpp"
#include "dispatch/rows.hpp"
#include "rules/rules.hpp"

namespace dovetail {
namespace {
using Candidates = std::vector<Plan::Candidate>;

// Rows for any dtype of a size move elements, each in memory of its own; those that make elements know which.
bool matches(DLDataType row, DType t, bool moves) {
  const DLDataType dl = info(t).dl;
  const bool is_such = row.code == DVT_ANY && (row.bits == 0 || row.bits == dl.bits);
  return row == dl || (is_such && (moves ? !is_packed(t) : !is_stored(t)));
}

// Does the row take operands of the plan's dtypes? Operands not given match any.
bool serves(const dvt_kernel& row, const Op& op, const Plan& plan, uint64_t given) {
  const uint32_t n_out = op.spec.n_out, n_in = operands_of(op, row.op_version);
  if (row.op_version > op.spec.version || row.n_in != n_in || row.n_out != n_out) return false;
  if (given >> n_in && !op.variadic) return false;  // an operand that is newer than the row
  if (op.variadic && !(row.operands[n_in - 1].flags & DVT_O_VARIADIC)) return false;
  const bool moves = n_in && !(op.spec.flags & op_converts);
  for (uint32_t i = 0; i < n_in; ++i)
    if (given >> i & 1 ? !matches(row.operands[i].dtype, plan.compute[i], moves)
                       : !(row.operands[i].flags & DVT_O_OPTIONAL))
      return false;
  for (uint32_t i = 0; i < n_out; ++i)
    if (!matches(row.operands[n_in + i].dtype, plan.result[i], moves)) return false;
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

// From or to floats of 8 bits: by way of float32 it is rounded once, as what float32 does not hold exactly is too
// large for those, but for float64.
bool converts_through_f32(const Op& op, const Plan& plan) {
  const DType from = plan.compute[0], to = plan.result[0];
  return op.spec.flags & op_converts && from != DType::f32 && to != DType::f32 && !is_complex(from) &&
         !is_complex(to) && (is_float8(to) ? from != DType::f64 : is_float8(from));
}

// Is the result's dtype or one of the operands' such? Operands that no rule changes are for the op itself to look
// at.
bool computes_with(bool (*is_such)(DType), const Op& op, const Plan& plan) {
  int i = 0;
  for (const ParamSpec& p : op.spec.params) {
    if (!is_operand(p.kind)) continue;
    const DType t = plan.compute[i++];
    if (p.kind == ParamKind::value && t != DType::none && is_such(t)) return true;
  }
  return is_such(plan.result[0]);
}

bool has_narrow_float(const Op& op, const Plan& plan) {
  return std::any_of(plan.compute, plan.compute + op.n_in,
                     [](DType t) { return t != DType::none && is_narrow_float(t); }) ||
         is_narrow_float(plan.result[0]);
}

// Would a row serve the operands if narrow floats were float32?
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

// Does a decomposition serve a call of these dtypes? That of a primitive with a dtype attribute serves results of
// another dtype than the operands' alone: without the attribute a device must have a row.
bool has_decomposition(const Op& op, const Plan& plan) {
  if (computes_with(is_complex, op, plan)) return op.spec.flags & op_complex_decomposition;
  if (op.spec.flags & op_stored_decomposition && computes_with(is_stored, op, plan)) return true;
  if (!(op.spec.flags & op_has_decomposition)) return false;
  return !(op.spec.flags & op_must) || op.dtype_attr < 0 || plan.result[0] != plan.compute[0];
}

// What runs the op on the device itself where no row serves the call.
void add_without_rows(const Op& op, const Plan& plan, bool wide, Candidates& to) {
  const uint32_t flags = op.spec.flags;
  if (converts_through_f32(op, plan)) return to.push_back({Plan::via_f32});
  if (flags & op_identity_on_ints && is_integer(plan.compute[0])) return to.push_back({Plan::identity});
  const bool decomposes = has_decomposition(op, plan);
  if (decomposes ? wide : flags & op_half_in_f32 && has_narrow_float(op, plan)) to.push_back({Plan::via_f32});
  if (decomposes) to.push_back({Plan::decomposition});
}

// Everything but other devices.
void add_own_candidates(const Op& op, const Device& device, Plan& plan, uint64_t given) {
  Candidates& to = plan.candidates;
  if (op.spec.flags & op_set_slice) return to.push_back({Plan::set_slice});
  if (op.spec.flags & op_view) return to.push_back({Plan::view});
  const std::vector<const dvt_kernel*> rows = kernel_rows(device, op.kernel_name);
  for (const dvt_kernel* row : rows) {
    if (!serves(*row, op, plan, given)) continue;
    check_row(*row, device);
    to.push_back({Plan::kernel, row});
  }
  plan.n_rows = uint32_t(to.size());
  add_without_rows(op, plan, has_wide_row(op, rows, plan, given), to);
}

bool required(const Op& op, int attr) {
  for (const ParamSpec& p : op.spec.params)
    if (!is_operand(p.kind) && attr-- == 0) return p.fallback.kind == AttrDefault::required;
  return false;
}
}  // namespace

void choose_candidates(const Op& op, const Device& device, Plan& plan, uint64_t given) {
  add_own_candidates(op, device, plan, given);
  const bool own = !plan.candidates.empty();
  if (fallback() != Fallback::error && (own ? device.props.kind != DVT_KIND_CPU : host_device(device) != nullptr))
    plan.candidates.push_back({Plan::host_fallback});
  if (plan.candidates.empty()) unsupported(op, device, plan, given);
  plan.mode = plan.candidates[0].mode;
}

std::string dtype_list(const Plan& plan, uint64_t given, int n_in) {
  std::string text;
  for (int i = 0; i < n_in; ++i)
    if (given >> i & 1) text += (text.empty() ? "" : ", ") + std::string(info(plan.compute[i]).name);
  return text.empty() ? info(plan.result[0]).name : text;
}

static std::optional<Support> better(const std::optional<Support>& a, const std::optional<Support>& b) {
  return a && (!b || a->mode <= b->mode) ? a : b;
}

static std::optional<Support> support_with(const Op& op, const Device& device, DType t, DType of_raw) {
  TensorType operand, mask, index, raw;
  operand.dtype = t, mask.dtype = DType::b8, index.dtype = DType::i64, raw.dtype = of_raw;
  const TensorType* in[kMaxInputs] = {};
  int n_in = 0, first_value = -1;
  for (const ParamSpec& p : op.spec.params) {
    if (!is_operand(p.kind)) continue;
    if (p.kind == ParamKind::value && first_value < 0) first_value = n_in;
    const TensorType* of_kind[] = {&operand, &mask, &index, &raw};
    in[n_in++] = p.optional ? nullptr : of_kind[int(p.kind)];
  }
  Attrs attrs = op.defaults;
  const auto with = [&](DType result) -> std::optional<Support> {
    if (result != DType::none) attrs.at[op.dtype_attr] = {DVT_A_DTYPE, 1, {.dt = info(result).dl}};
    Plan plan;
    const Inference call{op, in, n_in, attrs, plan.compute, plan.result, nullptr};
    try {
      const uint64_t given = rules::infer_dtypes(call, plan.compute, plan.result);
      if (first_value < 0 && plan.result[0] != t) return {};
      add_own_candidates(op, device, plan, given);
      const Plan::Mode mode = plan.candidates.empty() ? Plan::host_fallback : plan.candidates[0].mode;
      if (mode != Plan::via_f32) return Support{mode, first_value >= 0 && plan.compute[first_value] != t};
    } catch (const Error&) {
      return {};
    }
    if (!is_narrow_float(t)) return Support{Plan::via_f32, false};  // for a raw operand's sake
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

// ---- running ----------------------------------------------------------------------------------------------------

[[noreturn]] static void none_serves(Invocation& inv, std::span<const Plan::Candidate> rows) {
  if (inv.n_in > kMaxInputs)
    inv.fail("more than " + std::to_string(kMaxInputs) + " arrays: expected fewer, as the op has no decomposition");
  inv.fail(ErrorKind::not_implemented, "not supported on " + inv.device->name + ": " + why_declined(inv, rows));
}

// False: an op that the decomposition calls has no kernel, and the next candidate, another device, may run the
// call.
static bool decomposes(Invocation& inv, std::span<const Plan::Candidate> next) {
  try {
    return run_decomposition(inv), true;
  } catch (const Error& e) {
    if (e.kind != ErrorKind::not_implemented || next.empty() || !host_device(*inv.device)) throw;
    return false;
  }
}

void run_first_of(Invocation& inv, std::span<const Plan::Candidate> candidates) {
  size_t i = 0;
  while (i < candidates.size() && candidates[i].mode == Plan::kernel) ++i;
  const auto rows = candidates.first(i);
  if (i && inv.n_in <= kMaxInputs && run_rows(inv, rows)) return;
  for (; i < candidates.size(); ++i) switch (candidates[i].mode) {
      case Plan::kernel: break;
      case Plan::view: return run_view(inv);
      case Plan::set_slice: return run_set_slice(inv);
      case Plan::identity:
        *inv.out[0] = inv.in[0]->device ? *inv.in[0] : materialise(*inv.in[0], *inv.device);
        return;
      case Plan::via_f32: return run_via_f32(inv);
      case Plan::decomposition:
        if (decomposes(inv, candidates.subspan(i + 1))) return;
        break;
      case Plan::host_fallback:
        if (host_device(*inv.device)) return run_on_host(inv);
    }
  none_serves(inv, rows);
}
}  // namespace dovetail
