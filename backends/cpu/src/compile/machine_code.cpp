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
  std::atomic<bool> complete{false};  // the others are not written any more

  Answer() = default;
  Answer(const Answer&) = delete;
  ~Answer() {
    if (code) toolchain()->release(code);
  }
  void take(dvt_code* made, const char* reason) {
    code = made;
    if (!made) {
      const std::string message = std::string("[compile] no machine code for a group: ") + (reason ? reason : "");
      return dvt::host->log(dvt::host, 0, message.c_str());
    }
    for (size_t i = 0; i < functions.size(); ++i) {
      const void* entry = toolchain()->entry(made, uint32_t(i));
      if (!entry) return;
      functions[i] = reinterpret_cast<GeneratedFunction>(const_cast<void*>(entry));
    }
    complete.store(true, std::memory_order_release);
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

void MachineCode::spent(std::chrono::nanoseconds time) {
  if (nanoseconds_.fetch_add(time.count(), std::memory_order_relaxed) + time.count() < hot) return;
  if (!asked_.test_and_set()) ask();
}

void MachineCode::ask() {
  if (group_.loops.empty() || !toolchain()) return;
  const std::string request = request_to_llvm(group_, active_level());
  auto context = std::make_unique<std::shared_ptr<Answer>>(answer_);
  if (toolchain()->build(dvt::host, "llvm", request.data(), request.size(), Answer::ready, context.get()) == DVT_OK)
    context.release();
}
}  // namespace dovetail::cpu
