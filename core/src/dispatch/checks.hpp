// Checks of operands' values that no kernel and no decomposition could report alike on every device.
#pragma once
#include "dispatch/invocation.hpp"

namespace dovetail {
// After infer(): throws Error(value) where the op is no function of these values. Waits for the device where they
// are in an array.
void check_values(const Invocation&);
}  // namespace dovetail
