// Slices along one axis by index: a tensor is seen as (outer, axis, inner). Shared with the host.
#pragma once
#include "gpu/kernels/shared/axes.hpp"

namespace gpu {
struct Slices {
  uint64_t n;              // elements of the result
  Divisor64 inner, count;  // elements behind the axis; indices
  int64_t size, axis;      // of the tensor that is indexed, and which axis of it
  uint64_t call;           // for a fault
};
}  // namespace gpu
