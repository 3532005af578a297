// Nodes that hold programs: loop, cond, while_loop, scan. Their attributes, how many results they have, and how
// their programs are bound to the sizes of a call.
#pragma once
#include "graph/program.hpp"

namespace dovetail {
// The places of their attributes.
struct LoopAttrs {
  enum { count, numbers, body };
};
struct BranchAttrs {
  enum { then, otherwise };
};
struct WhileAttrs {
  enum { cond, body };
};
struct ScanAttrs {
  enum { n_carry, length, body };
};

// How many results a control node has. Throws Error(value) where its programs do not take as many arrays as the
// node has operands, or do not give as many as the op needs.
uint32_t count_results(const Op&, const Attrs&, size_t n_in);

// What programs from files may ask for when they are bound, nested programs included.
struct BindLimits {
  static constexpr int64_t kMostRounds = 1 << 16;  // of one loop
  static constexpr uint64_t kMostNodes = 1 << 18;  // that are bound, each once
  static constexpr uint64_t kMostSteps = 1 << 24;  // that one run runs
  uint64_t nodes = 0;                              // bound so far
};

struct ControlBinding {
  std::vector<std::shared_ptr<Binding>> programs;  // as Binding::Node has them
  std::vector<TensorType> results;
  uint64_t steps;
};
// Binds the programs of node `k` of `outer`. Nothing where a guard of theirs does not hold. Throws Error(value)
// which names the node where types do not fit together or a limit is passed.
std::optional<ControlBinding> bind_control(const Program& outer, size_t k, const Attrs&,
                                           const std::vector<const TensorType*>& in, BindLimits&,
                                           std::string* why = nullptr);
// As bind_program(), with the limits of the program around it.
std::optional<Binding> bind_nested(std::shared_ptr<const Program>, const TensorType* const* inputs,
                                   const Attrs* attrs, BindLimits&, std::string* why = nullptr);
}  // namespace dovetail
