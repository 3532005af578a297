// Nodes that hold programs, on a device.
#pragma once
#include "dispatch/replay.hpp"

namespace dovetail {
// Those of the programs of a control node, equal ones shared. Takes its bindings.
std::vector<std::shared_ptr<const Executable>> make_executables(std::vector<std::shared_ptr<Binding>>&, Device&);
// Runs control node k. Operands that end with it are taken from `values`: its programs may use their memory.
void run_control(const Executable&, size_t k, std::vector<Tensor>& values);
}  // namespace dovetail
