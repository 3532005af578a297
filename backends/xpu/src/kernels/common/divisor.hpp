// Sizes that kernels divide by. Shared with the host.
#pragma once
#include "dovetail/portable.hpp"

namespace gpu {
using Divisor64 = uint64_t;

// GPUs divide 64 bits slowly.
DVT_FN uint64_t quotient(uint64_t a, uint64_t b) { return (a | b) >> 32 ? a / b : uint32_t(a) / uint32_t(b); }
}  // namespace gpu
