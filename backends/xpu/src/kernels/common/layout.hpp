// How the operands of an elementwise kernel lie in memory. Shared with the host.
#pragma once
#include "dovetail/layout.hpp"

namespace gpu {
using dvt::Divisor;
using dvt::max_axes;
using dvt::Scalar;

template <int inputs>
struct Layout : dvt::Layout<inputs> {
  uint32_t tile;  // columns of a group: they lie together, for the sake of caches
};
}  // namespace gpu
