// The parameters by which one kernel serves several reductions. Shared with the host.
#pragma once
#include <cstdint>

namespace gpu {
struct Variant {
  uint64_t flip = 0;    // bits of an element, and of the result, that are taken the other way round
  uint64_t counts = 0;  // bits of an element that are looked at
  uint32_t mean = 0;    // the result is divided by the size of the row
};
}  // namespace gpu
