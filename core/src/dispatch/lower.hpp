// A program as a device's compiler likes it best: what the device has no kernel for opened into the nodes of its
// decomposition, casts of operands as nodes, equal nodes once.
#pragma once
#include "graph/program.hpp"

namespace dovetail {
struct Device;

// The passes that DOVETAIL_PASSES may switch off ("-cse,-fuse"): decompositions opened, casts as nodes, equal nodes
// once, and groups (fuse() in groups.hpp).
bool pass_is_on(std::string_view name);

struct Lowered {
  std::shared_ptr<const Program> program;
  std::vector<int> values;  // what each value of the program that was given became
};
// The same results, bit for bit, from inputs in the same order. `sizes`: types of the inputs, `arguments`: those of
// ProgramBuilder::argument; both are examples, it holds for all for which the program holds. Decompositions that
// look at sizes, or repeat nodes, stay calls. Throws what binding throws.
Lowered lower(std::shared_ptr<const Program>, const TensorType* const* sizes, const Attrs& arguments, Device&);
}  // namespace dovetail
