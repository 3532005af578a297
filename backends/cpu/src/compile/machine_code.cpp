#include "compile/machine_code.hpp"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "compile/llvm_text.hpp"
#include "dovetail/backend.hpp"

namespace dovetail::cpu {
namespace {
constexpr int64_t hot = 1'000'000;  // nanoseconds in a group after which it is worth machine code

const dvt_toolchain* toolchain() {
  static const auto* const found =
      static_cast<const dvt_toolchain*>(dvt::host->extension(dvt::host, "dovetail.toolchain", DVT_X_TOOLCHAIN));
  return found;
}
bool waits() {
  const char* value = std::getenv("DOVETAIL_COMPILE_WAIT");
  return value && !std::strcmp(value, "1");
}
}  // namespace

struct MachineCode::Answer {
  dvt_code* code = nullptr;
  std::vector<GeneratedFunction> functions;
  std::string reason;                 // why there is no code; guarded by `answered`
  std::atomic<bool> complete{false};  // the code is there: the others are not written any more
  std::atomic<bool> answered{false};

  Answer() = default;
  Answer(const Answer&) = delete;
  ~Answer() {
    if (code) toolchain()->release(code);
  }
  void take(dvt_code* made, const char* why) {
    code = made;
    for (size_t i = 0; made && i < functions.size(); ++i) {
      const void* entry = toolchain()->entry(made, uint32_t(i));
      if (!entry) why = "a function is missing", made = nullptr;
      functions[i] = reinterpret_cast<GeneratedFunction>(const_cast<void*>(entry));
    }
    if (!made)
      reason = why ? why : "", dvt::host->log(dvt::host, 0, ("[compile] no machine code: " + reason).c_str());
    complete.store(made, std::memory_order_release);
    answered.store(true, std::memory_order_release);
  }
  static void ready(void* context, dvt_code* code, const char* reason) {
    const std::unique_ptr<std::shared_ptr<Answer>> answer(static_cast<std::shared_ptr<Answer>*>(context));
    (*answer)->take(code, reason);
  }
};

MachineCode::MachineCode(const Group& group) : group_(group), answer_(std::make_shared<Answer>()) {
  answer_->functions.resize(group.loops.size());
  if (waits()) spent(std::chrono::nanoseconds(hot));
}

const GeneratedFunction* MachineCode::functions() const {
  return answer_->complete.load(std::memory_order_acquire) ? answer_->functions.data() : nullptr;
}

std::string MachineCode::state() const {
  if (group_.loops.empty()) return "";
  if (!asked_.test()) return "no machine code yet: it is asked for after a millisecond";
  if (!answer_->answered.load(std::memory_order_acquire)) return "machine code is being made";
  if (!functions()) return "no machine code: " + answer_->reason;
  size_t steps = 0, loops = 0;
  for (const Instruction& i : group_.joined.whole.body)
    if (i.kind == Instruction::generated) ++loops, steps += group_.loops[i.result].steps.size();
  return "machine code of " + std::to_string(steps) + " steps in " + std::to_string(loops) + " loops";
}

void MachineCode::spent(std::chrono::nanoseconds time) {
  if (nanoseconds_.fetch_add(time.count(), std::memory_order_relaxed) + time.count() < hot) return;
  if (!asked_.test_and_set()) ask();
}

void MachineCode::ask() {
  if (group_.loops.empty()) return;
  if (!toolchain()) return answer_->take(nullptr, "the runtime has no toolchains");
  const std::string request = request_to_llvm(group_, active_level());
  auto context = std::make_unique<std::shared_ptr<Answer>>(answer_);
  if (toolchain()->build(dvt::host, "llvm", request.data(), request.size(), Answer::ready, context.get()) == DVT_OK)
    context.release();
  else answer_->take(nullptr, "the runtime refuses the request");
}
}  // namespace dovetail::cpu
