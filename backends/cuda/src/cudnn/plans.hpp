// cuDNN's execution plans: one is made for a graph (cudnn/attention.hpp, cudnn/convolution.hpp) on a device, and
// run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "dovetail/abi.h"

namespace gpu::cudnn {
// Of an operand, in elements. size[0] == 0: there is no such operand.
struct Operand {
  int64_t size[4], stride[4];
};
// The addresses of operands by their numbers; those that a graph has not are not looked at.
struct Pointers {
  static constexpr int most = 16;
  void* at[most];

  void set(int operand, const void* data) { at[operand] = const_cast<void*>(data); }
};

class Plan;
using PlanRef = std::shared_ptr<const Plan>;

size_t workspace(const Plan&);    // bytes that run() wants
std::string engine(const Plan&);  // its name and the choices made for it
// Enqueues it on the call's stream. Safe in captures and from several threads.
dvt_status run(dvt_device*, const dvt_call*, const Plan&, const Pointers&, void* workspace);
}  // namespace gpu::cudnn
