// Nodes that hold programs, on a device.
#pragma once
#include <utility>

#include "dispatch/replay.hpp"

namespace dovetail {
// Those of the programs of a control node, equal ones shared. Takes its bindings. `fusion`: nullptr, or of the
// node's program.
std::vector<std::shared_ptr<const Executable>> make_executables(std::vector<std::shared_ptr<Binding>>&, Device&,
                                                                const Fusion*);
// Runs control node k. Operands that end with it are taken from the values: its programs may use their memory.
void run_control(const Executable&, size_t k, Values&);

// Within it, the while_loops that this thread runs have at most so many rounds, all of them together; the next one
// throws Error(runtime). For programs that may have no end, as the fuzzer's.
class RoundLimit {
 public:
  explicit RoundLimit(uint64_t rounds) : before_(std::exchange(left_, rounds)) {}
  ~RoundLimit() { left_ = before_; }
  RoundLimit(const RoundLimit&) = delete;
  static void take_one();

 private:
  static thread_local uint64_t left_;
  const uint64_t before_;
};
}  // namespace dovetail
