// A batch of products of matrices: c[..., m, n] = a[..., m, k] b[..., k, n] + bias[n], c without gaps. Shared with
// the host.
#pragma once
#include <cstdint>

namespace gpu {
inline constexpr int most_batch_axes = 14;
inline constexpr uint32_t product_threads = 256;

// The part of c that a block computes; a thread has a square of it.
constexpr int product_tile(int bits) { return bits < 64 ? 64 : bits == 64 ? 32 : 16; }

struct Product {
  uint64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column;  // strides in elements, 0: broadcast
  uint64_t matrices;
  uint32_t axes;
  int64_t batch[most_batch_axes], a_batch[most_batch_axes], b_batch[most_batch_axes];
};
}  // namespace gpu
