// A batch of products of matrices: c[..., m, n] = a[..., m, k] b[..., k, n] + bias[n], c without gaps. Shared with
// the host.
#pragma once
#include <cstdint>

namespace xpu {
inline constexpr int most_batch_axes = 14;

// The part of c that a group computes: GPUs have registers for so many sums of an item, and the floats'
// conversions.
struct TileOfProduct {
  int rows, columns;
};
constexpr TileOfProduct tile_of_product(int bits, bool floating) {
  return {bits == 64 ? 32 : 64, bits == 64 || floating ? 32 : 64};
}

struct Product {
  uint64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column;  // strides in elements, 0: broadcast
  uint64_t matrices;
  uint32_t axes;
  int64_t batch[most_batch_axes], a_batch[most_batch_axes], b_batch[most_batch_axes];
};
}  // namespace xpu
