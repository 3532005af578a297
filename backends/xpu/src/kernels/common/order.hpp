// By how much at once values are sorted. Shared with the host.
#pragma once
#include "gpu/kernels/shared/order.hpp"

namespace gpu {
inline constexpr uint64_t sort_tile = 1024;  // elements that a work-group sorts at once
}  // namespace gpu
