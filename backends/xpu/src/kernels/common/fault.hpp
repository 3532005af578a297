// An error that a kernel finds in its data. The host reads it at the next wait for the stream.
#pragma once
#include <cstdint>

namespace gpu {
struct Fault {
  uint32_t raised;  // 0, or 1 as soon as a work item has claimed it: the first one wins
  uint32_t round;   // of the host: the number of faults it has reported
  uint64_t call;    // its correlation_id
  int64_t index, axis, size;
};
}  // namespace gpu
