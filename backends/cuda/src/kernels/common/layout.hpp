// How the operands of an elementwise kernel lie in memory. Shared with the host.
#pragma once
#include <cstdint>

namespace gpu {
inline constexpr int max_axes = 4;                  // the host splits a call with more
inline constexpr uint32_t max_elements = 1u << 31;  // of one launch; the host splits larger calls

struct Scalar {  // a value of any type, in its first bytes
  uint64_t bits[2];
};

// The size of an axis, to divide by: i / size = i * factor >> (31 + shift) for i < 2^31, 2^shift >= size, factor =
// 2^(31 + shift) / size rounded up (Granlund and Montgomery, 1994). GPUs have no instruction for division.
struct Divisor {
  uint32_t size, factor, shift;

  constexpr uint32_t quotient(uint32_t i) const { return uint32_t(uint64_t{i} * factor >> (31 + shift)); }
};

// Elements as rows: one axis has the columns, the others count the rows. Strides are in elements, the output's
// last.
template <int inputs>
struct Layout {
  uint32_t rows, columns;
  uint32_t moves;       // bit i: input i moves along a row; else a row has one value of it
  uint32_t axes;        // of the rows; axis 0 is the innermost
  uint32_t neighbours;  // 1: a row's elements lie side by side in the output and in every input that moves
  Divisor size[max_axes - 1];
  int64_t stride[max_axes - 1][inputs + 1];
  int64_t step[inputs + 1];  // along a row
  Scalar value[inputs];      // of inputs without memory
};
}  // namespace gpu
