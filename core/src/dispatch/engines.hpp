// The engines that may serve an op, where the caller has chosen: what dovetail.nn.sdpa_engine() is made of. The
// choice is made per call among the rows of the plan, so that plans and traced programs are the same with and
// without one.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/plan.hpp"

namespace dovetail {
// "math" of a decomposition; "" of what is no engine.
std::string_view engine_of(const Plan::Candidate&);

// For calls of `ops`: only these engines, the first first.
struct EngineChoice {
  // Throws Error(value) for a name that no device knows for these ops, with the nearest that one does.
  EngineChoice(std::vector<const Op*> covered, std::vector<std::string> names);
  bool covers(const Op&) const;

  const std::vector<const Op*> ops;
  const std::vector<std::string> engines;
};

// Every engine that the device has for the op, in the order in which they are tried.
std::vector<std::string> engines_for(const Op&, const Device&);
// Those that would serve this call, after infer(), in the order in which they are tried without a choice.
std::vector<std::string> serving_engines(Invocation&);

// What is chosen for calls of this thread; nullptr: nothing.
extern thread_local constinit const EngineChoice* engine_choice __attribute__((tls_model("initial-exec")));
// Chooses for calls of this thread while it lives.
class EngineScope {
 public:
  explicit EngineScope(const EngineChoice* choice) : before_(engine_choice) { engine_choice = choice; }
  ~EngineScope() { engine_choice = before_; }
  EngineScope(const EngineScope&) = delete;

 private:
  const EngineChoice* const before_;
};
}  // namespace dovetail
