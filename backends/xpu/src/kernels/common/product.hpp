// The product of matrices and its tiles. Shared with the host.
#pragma once
#include "dovetail/layout.hpp"

namespace gpu {
using dvt::Product;

// The part of c that a group computes: GPUs have registers for so many sums of an item, and the floats'
// conversions.
struct TileOfProduct {
  int rows, columns;
};
constexpr TileOfProduct tile_of_product(int bits, bool floating) {
  return {bits == 64 ? 32 : 64, bits == 64 || floating ? 32 : 64};
}
}  // namespace gpu
