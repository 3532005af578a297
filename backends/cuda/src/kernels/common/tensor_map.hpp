// The description of a tensor for TMA, as the driver encodes it (CUtensorMap). Shared with the host.
#pragma once
#include <cstdint>

namespace gpu {
struct alignas(64) TensorMap {
  uint64_t opaque[16];
};
}  // namespace gpu
