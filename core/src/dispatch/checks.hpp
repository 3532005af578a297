// Checks of operands' values that no kernel and no decomposition could report alike on every device.
#pragma once
#include "dispatch/invocation.hpp"

namespace dovetail {
void check_exponent(const Invocation&);
// After infer(): throws Error(value) where the op is no function of these values. Waits for the device where they
// are in an array.
inline void check_values(const Invocation& inv) {
  if (inv.op.spec.flags & op_integer_exponent) [[unlikely]]
    check_exponent(inv);
}
}  // namespace dovetail
