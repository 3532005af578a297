// cuDNN's C functions of our own use; graphs are the front end's.
#pragma once
#include <cudnn_graph.h>

#include <string>

#include "driver/libraries.hpp"

namespace gpu::cudnn {
// clang-format off
#define GPU_CUDNN_FUNCTIONS(X) \
  X(cudnnCreate) X(cudnnGetErrorString) X(cudnnGetVersion) X(cudnnSetStream)
// clang-format on

struct Functions {
  GPU_LIBRARY_TABLE(GPU_CUDNN_FUNCTIONS)
  static Library open();
  std::string check(const Library&) const;
};

// Why it cannot be used, and the cure; empty if it can. The first call opens it.
inline const std::string& missing() { return OpenedLibrary<Functions>::get().missing; }
inline const Functions& functions() { return OpenedLibrary<Functions>::get().functions; }  // if nothing is missing
}  // namespace gpu::cudnn
