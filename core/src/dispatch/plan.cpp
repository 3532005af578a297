// The plans of every op.
#include "dispatch/plan.hpp"

#include <deque>
#include <memory>
#include <mutex>

#include "dispatch/execute.hpp"
#include "dispatch/packed.hpp"
#include "dispatch/rows.hpp"
#include "platform/platform.hpp"
#include "rules/rules.hpp"

namespace dovetail {
namespace {
std::mutex plan_mutex;
std::atomic<uint64_t> plans_forgotten{0};  // how often; changed with plan_mutex held

// Nobody else holds the locks while the process forks: the child could never take them.
void before_fork() { plan_mutex.lock(), lock_rows(), lock_ops(); }
void after_fork() { unlock_ops(), unlock_rows(), plan_mutex.unlock(); }

void log_plan(const Op& op, const Device& device, const Plan& plan, uint64_t given) {
  static const char* const modes[] = {"kernel",          "view",          "set_slice", "identity", "decomposition",
                                      "through float32", "another device"};
  std::string engines;
  const auto rows = plan.rows();
  for (size_t i = 0; i < rows.size(); ++i)
    if (const auto engine = engine_of(*rows[i].row); !i || engine != engine_of(*rows[i - 1].row))
      engines += (i ? ", " : " ") + std::string(engine);
  log(Log::dispatch, 2,
      op.spec.name + "(" + dtype_list(plan, given, op.n_in) + ") on " + device.name + ": " + modes[plan.mode] +
          engines);
}
// With the lock held. A table that is nearly full is started anew; plans are never freed, as other threads may be
// using them.
const Plan& keep_plan(OpPlans& of, const Device& device, std::unique_ptr<Plan> plan) {
  static auto& tables = *new std::deque<OpPlans::Table>;
  static auto& plans = *new std::deque<std::unique_ptr<const Plan>>;
  OpPlans::Table* table = of.tables[device.index].load(std::memory_order_acquire);
  uint64_t used = table ? 0 : OpPlans::kSlots;
  for (uint64_t i = 0; table && i < OpPlans::kSlots; ++i)
    used += table->slots[i].load(std::memory_order_relaxed) != nullptr;
  if (used > OpPlans::kSlots * 3 / 4)
    of.tables[device.index].store(table = &tables.emplace_back(), std::memory_order_release);
  for (uint64_t i = OpPlans::hash(plan->key);; ++i) {
    std::atomic<const Plan*>& slot = table->slots[i % OpPlans::kSlots];
    const Plan* p = slot.load(std::memory_order_relaxed);
    if (p && p->key == plan->key) return *p;  // another thread was first
    if (p) continue;
    slot.store(plan.get(), std::memory_order_release);
    return *plans.emplace_back(std::move(plan));
  }
}

// With the lock held.
OpPlans& plans_of(const Op& op) {
  static auto& all = *new std::deque<OpPlans>;
  if (!op.plans.load(std::memory_order_relaxed)) op.plans.store(&all.emplace_back(), std::memory_order_release);
  return *op.plans.load(std::memory_order_relaxed);
}

bool is_simple(const Op& op, const Plan& plan) {
  if (plan.n_rows != 1 || op.variadic) return false;
  const dvt_kernel& row = *plan.candidates[0].row;
  return row.op_version == op.spec.version && !DVT_HAS(&row, dvt_kernel, query) && !packs_operands(row);
}
}  // namespace

const Plan& make_plan(const Device& device, uint64_t key, const Invocation& call) {
  const Op& op = call.op;
  for (;;) {
    const uint64_t before = plans_forgotten.load(std::memory_order_acquire);
    auto plan = std::make_unique<Plan>();
    plan->key = key;
    const uint64_t given = rules::infer_dtypes(inference_of(call), plan->compute, plan->result);
    choose_candidates(op, device, *plan, given);
    plan->simple = is_simple(op, *plan);
    std::lock_guard lock(plan_mutex);
    if (plans_forgotten.load(std::memory_order_relaxed) != before) continue;  // made of what was true before
    if (logs(Log::dispatch)) log_plan(op, device, *plan, given);
    return keep_plan(plans_of(op), device, std::move(plan));
  }
}

void survive_forks() { platform::at_fork(before_fork, after_fork, after_fork); }

uint64_t plans_epoch() { return plans_forgotten.load(std::memory_order_acquire); }

void forget_plans() {
  {
    std::lock_guard lock(plan_mutex);
    ++plans_forgotten;
  }
  for (const Op* o : all_ops()) {
    std::lock_guard lock(plan_mutex);
    if (OpPlans* plans = o->plans.load(std::memory_order_relaxed))
      for (auto& table : plans->tables) table.store(nullptr, std::memory_order_release);
  }
}
}  // namespace dovetail
