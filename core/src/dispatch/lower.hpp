// A program as a device runs it best: equal nodes once and, for the device's compiler, what the device has no
// kernel for opened into the nodes of its decomposition, and casts of operands as nodes.
#pragma once
#include "graph/raise.hpp"

namespace dovetail {
struct Device;

// The passes that DOVETAIL_PASSES may switch off ("-cse,-fuse"): forms raised to ops, decompositions opened, casts
// as nodes, equal nodes once, and groups (fuse() in groups.hpp).
bool pass_is_on(std::string_view name);

struct Lowered {
  std::shared_ptr<const Program> program;
  std::vector<int> values;  // what each value of the program that was given became
};
// The same results, bit for bit, from inputs in the same order. `sizes`: types of the inputs, `arguments`: those of
// ProgramBuilder::argument; both are examples, it holds for all for which the program holds. Decompositions that
// look at sizes, or repeat nodes, stay calls. `raise`: first forms of ops (raise.hpp) become the ops, whose results
// may differ by rounding. Throws what binding throws.
Lowered lower(std::shared_ptr<const Program>, const TensorType* const* sizes, const Attrs& arguments, Device&,
              bool raise = false);
// The forms of ops on arrays of a dtype, which core/schema/forms.py declares.
std::span<const Form> shipped_forms(DType);
}  // namespace dovetail
