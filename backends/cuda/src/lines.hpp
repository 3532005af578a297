// The blocks of kernels over lines (kernels/common/axes.hpp).
#pragma once
#include <initializer_list>

#include "gpu/plan.hpp"
#include "kernels/common/pack.hpp"

namespace gpu {
// Rows of a tensor without gaps, which two operands share.
Lines plan_rows(uint64_t rows, uint64_t size);

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
