// What the files that run calls as decompositions share.
#pragma once
#include <array>

#include "dispatch/invocation.hpp"
#include "graph/program.hpp"

namespace dovetail {
// In which dtype a decomposition of the op computes with operands of dtype `t`.
inline DType working(DType t, const Op& op) {
  return t != DType::none && is_narrow_float(t) && op.spec.flags & op_half_in_f32 ? DType::f32 : t;
}

// The dtypes to which an operand is cast: that of the call, and the one that it computes in. So an integer beside
// narrow floats becomes as narrow first.
inline std::array<DType, 2> casts_of(const Invocation& inv, int operand) {
  const DType t = inv.plan->compute_of(operand);
  return {t, working(t, inv.op)};
}

// The decompositions that the library brings for the dtypes of the call, and those among the ones that its
// program's file brings; empty where there are none.
std::vector<std::shared_ptr<const Program>> shipped_for(const Invocation&);

// While one lives, calls of this thread for which the library has no decomposition take those that the program's
// file brings. What is made of them serves this program alone.
class BroughtDecompositions {
 public:
  explicit BroughtDecompositions(const Program&);
  ~BroughtDecompositions();
  BroughtDecompositions(const BroughtDecompositions&) = delete;

 private:
  const Program* const before_;
};
std::vector<std::shared_ptr<const Program>> brought_for(const Invocation&);
uint64_t uses_of_brought();  // by this thread, so far
void note_use_of_brought();

// Decompositions of all calls of the program, and of the calls in these, for some choices of the sizes that are
// open: for libraries that have none. Throws Error(value) where no sizes are found that the program takes.
Program::Decompositions collect_decompositions(const std::shared_ptr<const Program>&);
}  // namespace dovetail
