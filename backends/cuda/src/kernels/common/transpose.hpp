// A copy whose operands are contiguous along different axes. Shared with the host.
#pragma once
#include "kernels/common/axes.hpp"

namespace gpu {
// x is contiguous along axis 0, the output along axis 1: tiles of both at a time, for each place of the other axes.
struct Transpose {
  uint64_t tiles;
  LongDivisor along[2];  // of the tiles
  uint64_t size[2];
  int64_t from, to;  // strides: of axis 1 in x, of axis 0 in the output
  IterationSpace others;
};
// The edge of a tile, of elements of so many bytes: rows of it are whole sectors of memory.
constexpr int tile_edge(int bytes) { return bytes < 4 ? 64 : 32; }
}  // namespace gpu
