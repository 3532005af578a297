// The kernels of a reduction (kernels/common/reduction.hpp).
#pragma once
#include "launch.hpp"

namespace gpu {
struct ReductionKernels {
  KernelId rows, columns, parts;
  uint32_t value_bytes;  // of the result of one part

  template <class... T>
  dvt_status launch(dvt_device* d, const dvt_call* c, KernelId kernel, const Grid& grid,
                    const T&... arguments) const {
    return gpu::launch(d, c, kernel, grid, arguments...);
  }
};
}  // namespace gpu
