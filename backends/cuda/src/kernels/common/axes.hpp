// The axes of two operands that are iterated together. Shared with the host.
#pragma once
#include <cstdint>

namespace gpu {
inline constexpr int most_axes = 16;

// A number to divide by, which GPUs have no instruction for: i / value = 2 i * factor >> (64 + shift) for i < 2^63,
// 2^shift >= value, factor = 2^(63 + shift) / value rounded up (Granlund and Montgomery, 1994).
struct LongDivisor {
  uint64_t value, factor;
  uint32_t shift;
};

struct Axis {
  LongDivisor size;
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
  LongDivisor parts;     // into which a line is cut, for more blocks
  uint64_t part;         // elements of each part but the last
  LongDivisor blocks;    // of columns side by side
  uint64_t pieces;       // of work: parts of all lines or, of columns, of all blocks
  uint32_t threads;      // of a block that share a part: a power of two
  uint32_t kept, along;
  Axis axis[most_axes];
};
}  // namespace gpu
