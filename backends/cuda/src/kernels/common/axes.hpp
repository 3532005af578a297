// Tensors as rows. Shared with the host.
#pragma once
#include "gpu/kernels/shared/axes.hpp"

namespace gpu {
// Tensors as rows: the kept axes, which come first, count them, and each is a row-major iteration over the axes
// along it. Two of its elements differ in operand 1 by that operand's strides, or a row is one element there.
struct ReductionPlan {
  uint64_t count, size;  // rows, and elements of each
  LongDivisor parts;     // into which a row is cut, for more blocks
  uint64_t part;         // elements of each part but the last
  LongDivisor blocks;    // of columns side by side
  uint64_t chunks;       // of work: parts of all rows or, of columns, of all blocks
  uint32_t threads;      // of a block that share a part: a power of two
  uint32_t kept, along;
  Axis axis[most_axes];
};
}  // namespace gpu
