// Machine code for the generated loops of a group, made by the toolchain "llvm" while the group runs without it.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "compile/group.hpp"

namespace dovetail::cpu {
class MachineCode {
 public:
  explicit MachineCode(const Group&);  // asks at once where DOVETAIL_COMPILE_WAIT=1

  // One function for each of the group's generated loops, or nullptr: there are none yet. They live as long as
  // this.
  const GeneratedFunction* functions() const;

  // For the user: how far it is, or why there is none; empty: nothing of the group can be machine code.
  std::string state() const;

  // Whether it has not asked yet and may.
  bool counts_time() const { return !group_.loops.empty() && !asked_.test(std::memory_order_relaxed); }
  // The group has run for so long without them; asks when that is worth it, once.
  void spent(std::chrono::nanoseconds);

 private:
  struct Answer;
  void ask();

  const Group& group_;
  std::shared_ptr<Answer> answer_;  // the toolchain has a part of it until it has answered
  std::atomic<int64_t> nanoseconds_{0};
  std::atomic_flag asked_;
};
}  // namespace dovetail::cpu
