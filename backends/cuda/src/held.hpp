// The host side of kernels/common/held.cuh: compact lines in the registers of their threads.
#pragma once
#include "kernels/common/held.hpp"
#include "lines.hpp"

namespace gpu {
inline bool is_holdable(const Lines& how, uint32_t bytes) {
  const Axis& axis = how.axis[how.kept];
  const uint64_t most = uint64_t{most_holders} * held_packs(int(bytes)) * (pack_bytes / bytes);
  return how.along == 1 && axis.stride[0] == 1 && axis.stride[1] == 1 && how.size <= most;
}
// Their threads, as few as can hold them where there are many lines.
inline Grid grid_of_holders(Lines& how, uint32_t bytes) {
  return grid_of_lines(how, pack_bytes / bytes, most_holders, uint32_t(held_packs(int(bytes))));
}
}  // namespace gpu
