// The kernels of a reduction (kernels/common/reduction.cuh).
#pragma once
#include "kernels/common/reduction.hpp"
#include "launch.hpp"

namespace gpu {
struct ReductionKernels {
  KernelId lines, columns, parts;
  uint32_t value_bytes;  // of the result of one part
  Variant variant;
};
}  // namespace gpu
