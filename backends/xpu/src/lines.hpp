// The host side of kernels/common/axes.hpp: how tensors lie, and the work-groups of kernels over lines.
#pragma once
#include "kernels/common/axes.hpp"
#include "launch.hpp"

namespace xpu {
// The axes of a shape with the strides of two operands; neighbours that both operands pass as one are one.
Walk plan_walk(int axes, const int64_t* shape, const int64_t* first, const int64_t* second);

// x's lines over the axes whose bit is set, and where operand 1 has them: its strides by the axes of x.
Lines plan_lines(const DLTensor* x, uint32_t along, const int64_t* second);

// Is an item for each line better than a group? Then the last kept axis is the one of neighbouring lines.
bool prefer_columns(Lines&);

// A group for each of so many pieces of work, of as many items as pay for `size` elements.
Range range_of_groups(uint64_t groups, uint64_t size);
// Groups of items that stand side by side on the last kept axis, for each part.
Range range_of_columns(const Lines&);
}  // namespace xpu
