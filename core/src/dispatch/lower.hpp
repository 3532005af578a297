// A program as a device runs it best: equal nodes once and, for the device's compiler, what the device has no
// kernel for opened into the nodes of its decomposition, and casts of operands as nodes.
#pragma once
#include <set>

#include "graph/raise.hpp"

namespace dovetail {
struct Device;

// The passes that DOVETAIL_PASSES may switch off ("-cse,-fuse"): forms raised to ops (raise.hpp), decompositions
// opened, casts as nodes, simpler calls (algebra.hpp), calls of constants (fold.hpp), equal nodes once, and groups
// (fuse() in groups.hpp).
bool pass_is_on(std::string_view name);

struct Lowered {
  std::shared_ptr<const Program> program;
  std::vector<int> values;  // what each value of the program that was given became
  uint64_t folded = 0;      // bytes of results of calls that have run
  // Values of the program whose calls raise no error that another one does not raise (Algebra::simplify).
  std::set<int> covered = {};
};
// The same results, bit for bit, from inputs in the same order. `sizes`: types of the inputs, `arguments`: those of
// ProgramBuilder::argument; both are examples, it holds for all for which the program holds. Decompositions that
// look at sizes, or repeat nodes, stay calls. Throws what binding throws.
struct LowerOptions {
  bool raise = false;       // first forms of ops become the ops, whose results may differ by rounding
  bool fold = false;        // calls of constants run now, and their results are arrays of the program
  bool never_grow = false;  // but only where these are not larger than the arrays that go, or have 1 KiB at most
};
Lowered lower(std::shared_ptr<const Program>, const TensorType* const* sizes, const Attrs& arguments, Device&,
              LowerOptions = {});
// The forms of ops on arrays of a dtype, which core/schema/forms.py declares.
std::span<const Form> shipped_forms(DType);
}  // namespace dovetail
