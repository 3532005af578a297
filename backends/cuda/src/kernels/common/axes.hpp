// Tensors as rows, as channels and as the tiles of a transposing copy. Shared with the host.
#pragma once
#include "gpu/kernels/shared/axes.hpp"

namespace gpu {
// Tensors as rows: the kept axes, which come first, count them, and each is a row-major iteration over the axes
// along it. Two of its elements differ in operand 1 by that operand's strides, or a row is one element there.
struct ReductionPlan {
  uint64_t count, size;  // rows, and elements of each
  LongDivisor parts;     // into which a row is cut, for more blocks
  uint64_t part;         // elements of each part but the last
  LongDivisor blocks;    // of columns side by side
  uint64_t chunks;       // of work: parts of all rows or, of columns, of all blocks
  uint32_t threads;      // of a block that share a part: a power of two
  uint32_t kept, along;
  Axis axis[most_axes];
};

// Tensors whose elements differ by the index of one axis: those of an index are its channel.
struct Channels {
  uint64_t n;                // elements
  LongDivisor inner, count;  // elements of a channel side by side; channels, which come in turn
};

// A copy whose operands are contiguous along different axes, x along axis 0 and the output along axis 1: tiles of
// both at a time, for each place of the other axes.
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
