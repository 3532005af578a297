// The axes of two operands that are iterated together. Shared with the host.
#pragma once
#include <cstdint>

namespace gpu {
inline constexpr int most_axes = 16;

struct Axis {
  uint64_t size;
  int64_t stride[2];  // of either operand, in elements
};

// All of a tensor, row-major.
struct Walk {
  uint32_t axes;
  Axis axis[most_axes];
};

// Tensors as lines: the kept axes, which come first, count them, and each is a row-major walk over the axes along
// it. Two of its elements differ in operand 1 by that operand's strides, or a line is one element there.
struct Lines {
  uint64_t count, size;  // lines, and elements of each
  uint64_t parts;        // into which a line is cut, for more work-groups
  uint32_t kept, along;
  Axis axis[most_axes];
};
}  // namespace gpu
