// What a kernel finds wrong with its data. The host reads it at the next wait for the stream.
#pragma once
#include <cstdint>

namespace xpu {
struct Fault {
  uint32_t raised;  // 0, or 1 as soon as a work item has claimed it: the first one wins
  uint32_t round;   // of the host: how many faults it has told
  uint64_t call;    // its correlation_id
  int64_t index, axis, size;
};
}  // namespace xpu
