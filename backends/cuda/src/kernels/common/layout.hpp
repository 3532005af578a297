// How the operands of an elementwise kernel lie in memory. Shared with the host.
#pragma once
#include "dovetail/layout.hpp"

namespace gpu {
using dvt::Divisor;
using dvt::Layout;
using dvt::max_axes;
using dvt::Scalar;
}  // namespace gpu
