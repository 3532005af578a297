// An error that a kernel finds in its data, in host memory that the device maps. Shared with the host, which reads
// it after a wait.
#pragma once
#include <cstdint>

namespace gpu {
struct Fault {
  uint32_t raised;  // 0, or 1 as soon as a thread has claimed it: the first one wins
  uint32_t axis;
  uint64_t call;  // its correlation_id
  int64_t index, size;
};
}  // namespace gpu
