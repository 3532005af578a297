// The host side of kernels/common/channels.cuh.
#pragma once
#include "kernels/common/channels.hpp"
#include "lines.hpp"

namespace gpu {
// The channels along an axis of x; without one (-1) all is one channel.
inline Channels plan_channels(const DLTensor* x, int64_t axis) {
  const auto n = uint64_t(dvt::size(x));
  if (axis < 0) return {n, divide_by(n), divide_by(1)};
  uint64_t inner = 1;
  for (int64_t i = axis + 1; i < x->ndim; ++i) inner *= uint64_t(x->shape[i]);
  return {n, divide_by(inner), divide_by(uint64_t(x->shape[axis]))};
}
// Of kernels whose threads take 16 bytes of the wider type at once.
inline Grid grid_of_channels(const Channels& how, uint32_t bytes) {
  const uint64_t packed = pack_bytes / bytes;
  return grid_of((how.n + packed - 1) / packed);
}
}  // namespace gpu
