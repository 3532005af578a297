// The blocks of kernels over rows (kernels/common/axes.hpp).
#pragma once
#include <initializer_list>

#include "gpu/plan.hpp"
#include "kernels/common/axes.hpp"
#include "kernels/common/pack.hpp"

namespace gpu {
// Rows of a tensor without gaps, which two operands share.
ReductionPlan plan_rows(uint64_t rows, uint64_t size);

// Cuts rows into so many parts, or fewer, of a multiple of `whole` elements: no pack lies in two of them.
void cut(ReductionPlan&, uint64_t parts, uint64_t whole = pack_bytes);

// Do both operands have elements of so many bytes, of every row, in packs of 16 bytes?
bool is_packed(const ReductionPlan&, uint32_t bytes, std::initializer_list<const void*> operands);

// Chooses how many threads share a part, `most` at most, a power of two: each has about `packs` times `each`
// elements where there are many parts, and fewer where threads would be few. Then the blocks.
Grid grid_of_reduction_rows(ReductionPlan&, uint64_t each, uint32_t most = block_size, uint32_t packs = 4);
// The same for columns.
Grid grid_of_columns(ReductionPlan&, uint32_t most = block_size);
// The blocks that grid_of_columns would have for uncut rows.
uint64_t blocks_of_columns(const ReductionPlan&);

// ---- compact rows in the registers of their threads (kernels/common/register_rows.cuh) -----------

inline bool fits_registers(const ReductionPlan& how, uint32_t bytes) {
  const Axis& axis = how.axis[how.kept];
  const uint64_t most = uint64_t{most_register_threads} * register_packs(int(bytes)) * (pack_bytes / bytes);
  return how.along == 1 && axis.stride[0] == 1 && axis.stride[1] == 1 && how.size <= most;
}
// Their threads, as few as can hold them where there are many rows.
inline Grid grid_of_register_rows(ReductionPlan& how, uint32_t bytes) {
  return grid_of_reduction_rows(how, pack_bytes / bytes, most_register_threads,
                                uint32_t(register_packs(int(bytes))));
}

// ---- channels (kernels/common/channels.cuh) ---------------------------------------------

// The channels along an axis of x; without one (-1) all is one channel.
inline Channels plan_channels(const DLTensor* x, int64_t axis) {
  const auto n = uint64_t(dvt::size(x));
  if (axis < 0) return {n, divide_by(n), divide_by(1)};
  uint64_t inner = 1;
  for (int64_t i = axis + 1; i < x->ndim; ++i) inner *= uint64_t(x->shape[i]);
  return {n, divide_by(inner), divide_by(uint64_t(x->shape[axis]))};
}
// The grid of kernels whose threads take 16 bytes of the wider type at once.
inline Grid grid_of_channels(const Channels& how, uint32_t bytes) {
  const uint64_t packed = pack_bytes / bytes;
  return grid_of((how.n + packed - 1) / packed);
}
}  // namespace gpu
