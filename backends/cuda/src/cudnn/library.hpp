// cuDNN's C functions of our own use; graphs are the front end's.
#pragma once
#include <cudnn_graph.h>

#include <string>

#include "driver/libraries.hpp"

namespace gpu::cudnn {
// clang-format off
#define GPU_CUDNN_FUNCTIONS(X) \
  X(cudnnCreate) X(cudnnDestroy) X(cudnnGetErrorString) X(cudnnGetVersion) X(cudnnSetStream)
// clang-format on

struct Functions {
  GPU_CUDNN_FUNCTIONS(GPU_LIBRARY_MEMBER)
};

inline constexpr size_t oldest_version = 91900;  // of which its plans are known to us

// Why it cannot be used, and what helps; empty where it can. Opens it when first asked.
const std::string& missing();
const Functions& functions();  // where nothing is missing
}  // namespace gpu::cudnn
