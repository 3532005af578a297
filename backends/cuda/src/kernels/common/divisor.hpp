// Sizes that kernels divide by. Shared with the host.
#pragma once
#include "dovetail/portable.hpp"

namespace gpu {
// A number to divide by, which GPUs have no instruction for: i / value = 2 i * factor >> (64 + shift) for i < 2^63,
// 2^shift >= value, factor = 2^(63 + shift) / value rounded up (Granlund and Montgomery, 1994).
struct LongDivisor {
  uint64_t value, factor;
  uint32_t shift;
};
using Divisor64 = LongDivisor;

DVT_FN uint64_t quotient(uint64_t i, const LongDivisor& by) {
  return dvt::high_product(2 * i, by.factor) >> by.shift;
}
}  // namespace gpu
