// From graphs to execution plans: the border to cuDNN's C++ front end, which takes half a minute to compile.
#pragma once
#include "cudnn/graphs.hpp"

namespace gpu::cudnn {
// For which device plans are made: one that is there, by its cuDNN handle, or one that is described.
struct Target {
  void* handle = nullptr;
  std::string description;  // JSON, as cuDNN writes it; used where there is no handle
  int capability = 0;       // 90
};

struct Planned {
  PlanRef plan;         // nullptr where cuDNN has no engine for it
  std::string refusal;  // cuDNN's message then
};

// To be called once, before all else, with the opened library.
void use_library(void* handle);
Planned make_plan(const Target&, const AttentionGraph&);
Planned make_plan(const Target&, const ConvolutionGraph&);

// Enqueues it on the handle's stream. Returns cuDNN's error message, empty on success.
std::string execute(const Plan&, void* handle, const Pointers&, void* workspace);
}  // namespace gpu::cudnn
