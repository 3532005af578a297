#include "dispatch/engines.hpp"

#include <algorithm>
#include <utility>

#include "device/log.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/rows.hpp"
#include "text.hpp"

namespace dovetail {
thread_local constinit const EngineChoice* engine_choice = nullptr;

namespace {
bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
void add_once(std::vector<std::string>& names, std::string_view name) {
  if (!has(names, name)) names.emplace_back(name);
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

// Why no row of the plan is the engine's.
std::string why_without_rows(const Invocation& inv, const std::string& engine) {
  const std::vector<std::string> known = engines_for(inv.op, *inv.device);
  if (!has(known, engine)) return "this device has no engine '" + engine + "': it has " + listed(known);
  uint64_t given = 0;
  for (int i = 0; i < inv.n_in; ++i) given |= uint64_t{inv.has(i)} << i;
  return "no kernel of it takes " + dtype_list(*inv.plan, given, inv.n_in);
}

// Empty where the engine has served the call, else why it does not.
std::string run_by(Invocation& inv, const std::string& engine) {
  const std::span<const Plan::Candidate> all = inv.plan->candidates;
  if (engine == kMathEngine) {
    const auto math = std::find_if(all.begin(), all.end(), [](auto& c) { return c.mode == Plan::decomposition; });
    if (math == all.end()) return "the op has no decomposition";
    log_engine(inv, kMathEngine, "");
    run_first_of(inv, {math, all.end()});
    return {};
  }
  std::vector<Plan::Candidate> rows;
  for (const Plan::Candidate& c : inv.plan->rows())
    if (engine_of(c) == engine) rows.push_back(c);
  if (rows.empty()) return why_without_rows(inv, engine);
  if (!run_rows(inv, rows, true)) return why_declined(inv, rows);
  log_engine(inv, engine, "");
  return {};
}
}  // namespace

EngineChoice::EngineChoice(std::vector<const Op*> covered, std::vector<std::string> names)
    : ops(std::move(covered)), engines(std::move(names)) {
  std::vector<std::string> known;
  for (const Device* device : devices())
    for (const Op* op : ops)
      for (const std::string& engine : engines_for(*op, *device)) add_once(known, engine);
  for (const std::string& engine : engines)
    if (!has(known, engine))
      throw Error(ErrorKind::value, "no device has an engine '" + engine + "'" + did_you_mean(engine, known));
}

std::string_view engine_of(const Plan::Candidate& c) {
  return c.mode == Plan::kernel ? engine_of(*c.row) : c.mode == Plan::decomposition ? kMathEngine : "";
}

bool EngineChoice::covers(const Op& op) const { return std::find(ops.begin(), ops.end(), &op) != ops.end(); }

std::vector<std::string> engines_for(const Op& op, const Device& device) {
  std::vector<std::string> engines;
  for (const dvt_kernel* row : kernel_rows(device, op.kernel_name)) add_once(engines, engine_of(*row));
  if (op.spec.flags & op_has_decomposition) add_once(engines, kMathEngine);
  return engines;
}

std::vector<std::string> serving_engines(Invocation& inv) {
  std::vector<std::string> engines;
  if (inv.plan->mode == Plan::kernel)
    for (const dvt_kernel* row : serving_rows(inv)) add_once(engines, engine_of(*row));
  if (inv.op.spec.flags & op_has_decomposition) add_once(engines, kMathEngine);
  return engines;
}

void log_engine(const Invocation& inv, std::string_view engine, const std::string& refused) {
  if (logs(Log::dispatch, 3))
    log(Log::dispatch, 3,
        inv.op.spec.name + " on " + inv.device->name + " by " + std::string(engine) +
            (refused.empty() ? "" : "; " + refused));
}

void Invocation::run_chosen() {
  const EngineChoice& choice = *engine_choice;
  if (!choice.covers(op)) return run_first_of(*this, plan->candidates);
  std::string refused;
  for (const std::string& engine : choice.engines) {
    const std::string why = run_by(*this, engine);
    if (why.empty()) return;
    refused += (refused.empty() ? "" : "; ") + engine + ": " + why;
  }
  fail(ErrorKind::not_implemented, "no chosen engine serves this call on " + device->name + ": " + refused);
}
}  // namespace dovetail
