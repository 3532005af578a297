// The kernels of a reduction (kernels/common/reduction.hpp).
#pragma once
#include "launch.hpp"

namespace gpu {
struct ReductionKernels {
  KernelId lines, columns, parts;
  uint32_t value_bytes;  // of the result of one part
};
}  // namespace gpu
