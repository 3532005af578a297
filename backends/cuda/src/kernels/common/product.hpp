// The product of matrices and its tiles. Shared with the host.
#pragma once
#include "dovetail/layout.hpp"

namespace gpu {
using dvt::Product;
inline constexpr uint32_t product_threads = 256;

// The part of c that a block computes; a thread has a square of it.
constexpr int product_tile(int bits) { return bits < 64 ? 64 : bits == 64 ? 32 : 16; }
}  // namespace gpu
