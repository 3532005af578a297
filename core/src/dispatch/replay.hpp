// A program on a device: its binding with the plans of the device, and its run without any front end.
#pragma once
#include "dispatch/invocation.hpp"
#include "graph/program.hpp"

namespace dovetail {
// A binding whose nodes have plans on a device; decompositions that nodes need are bound with it.
struct Executable {
  struct Node {
    const Plan* plan;                          // none: of a control node
    int donor = -1;                            // a value that ends with the node and whose memory output 0 may take
    bool casts = false;                        // astype
    std::shared_ptr<const Executable> nested;  // its decomposition, where that is what the plan wants
    std::vector<std::shared_ptr<const Executable>> programs = {};  // of a control node, as its binding has them
  };
  Binding binding;             // its values are moved to the next
  std::vector<Tensor> values;  // without memory, but constants
  std::vector<Node> nodes;
  Device* device;
  uint64_t epoch;  // of the plans
};

// Throws Error(not_implemented) where the device lacks a kernel that a node needs. `arrays`: those of the program,
// on the device.
std::shared_ptr<const Executable> make_executable(Binding, Device&, std::span<const Tensor> arrays = {});
bool is_current(const Executable&);  // kernels and the fallback mode have not changed since
// Runs it on operands of exactly the dtypes and shapes of the binding. Results that are constants stay in host
// memory.
void replay(const Executable&, const Tensor* const* in, Tensor* const* out);
// The same on operands that are given away: where nobody else holds their memory, it may be used. `given`: nullptr,
// or for each result the memory in which the caller wants it, or nullptr; results that are computed there without a
// copy share it.
std::vector<Tensor> replay(const Executable&, std::vector<Tensor> in, const Tensor* const* given = nullptr);
}  // namespace dovetail
