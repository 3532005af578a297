// Tensors whose elements differ by the index of one axis: those of an index are its channel. Shared with the host.
#pragma once
#include "kernels/common/axes.hpp"

namespace gpu {
struct Channels {
  uint64_t n;                // elements
  LongDivisor inner, count;  // elements of a channel side by side; channels, which come in turn
};
}  // namespace gpu
