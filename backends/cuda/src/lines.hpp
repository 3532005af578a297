// The host side of kernels/common/axes.hpp: how tensors lie, and the blocks of kernels over lines.
#pragma once
#include <initializer_list>

#include "kernels/common/axes.hpp"
#include "kernels/common/pack.hpp"
#include "launch.hpp"

namespace gpu {
LongDivisor divide_by(uint64_t);

// The axes of a shape with the strides of two operands; neighbours that both operands pass as one are one.
Walk plan_walk(int axes, const int64_t* shape, const int64_t* first, const int64_t* second);

// x's lines over the axes whose bit is set, with the strides of two operands by the axes of x. Uncut, by a thread
// each.
Lines plan_lines(const DLTensor* x, uint32_t along, const int64_t* first, const int64_t* second);
inline Lines plan_lines(const DLTensor* x, uint32_t along, const int64_t* second) {
  return plan_lines(x, along, x->strides, second);
}
// Rows of a tensor without gaps, which two operands share.
Lines plan_rows(uint64_t rows, uint64_t size);

// Is a column of threads for each line better than a row? Then the last kept axis is the one of neighbouring lines.
bool prefer_columns(Lines&);

// Cuts lines into so many parts, or fewer, of a multiple of `whole` elements: no pack lies in two of them.
void cut(Lines&, uint64_t parts, uint64_t whole = pack_bytes);

// Do both operands have elements of so many bytes, of every line, in packs of 16 bytes?
bool is_packed(const Lines&, uint32_t bytes, std::initializer_list<const void*> operands);

// Chooses how many threads share a part, `most` at most, a power of two: each has about `packs` times `each`
// elements where there are many parts, and fewer where threads would be few. Then the blocks.
Grid grid_of_lines(Lines&, uint64_t each, uint32_t most = block_size, uint32_t packs = 4);
// The same for columns.
Grid grid_of_columns(Lines&, uint32_t most = block_size);
// The blocks that grid_of_columns would have for uncut lines.
uint64_t blocks_of_columns(const Lines&);
}  // namespace gpu
