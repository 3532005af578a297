// FlashAttention's parameters: softmax(q k^T * scale + mask) v for each head of each batch. Shared with the host.
#pragma once
#include <cstdint>

#include "kernels/common/attention.hpp"
#include "kernels/common/tensor_map.hpp"

namespace gpu {
// The kernels on mma.sync, for heads of up to `size` elements: blocks of so many warps of `tiles` x 16 queries,
// which take so many keys at a time. Two tiles for a warp read shared memory half as often; where they leave
// no registers, there are more warps.
struct FlashShape {
  int size, warps, tiles, keys;

  constexpr int threads() const { return warps * 32; }
  constexpr int queries() const { return warps * tiles * 16; }
  constexpr int shared_bytes() const { return (queries() + 2 * keys) * size * 2; }
};
inline constexpr FlashShape flash_shapes[] = {{32, 4, 2, 64},  {64, 4, 2, 64},  {96, 4, 2, 64},
                                              {128, 4, 2, 32}, {192, 8, 1, 64}, {256, 8, 1, 32}};
inline constexpr uint32_t most_flash_size = 256;
// The first that is wide enough.
constexpr int flash_shape_number(int size) {
  int i = 0;
  while (flash_shapes[i].size < size) ++i;
  return i;
}
constexpr FlashShape flash_shape(int size) { return flash_shapes[flash_shape_number(size)]; }

// Which keys a query sees: all, those up to its own number, or up to it counted from the last query and key.
enum Causal : uint32_t { causal_none, causal_top_left, causal_bottom_right };

// Strides in elements; the last axis is dense. 0: broadcast.
struct FlashStrides {
  int64_t batch, head, row;
};

// Blocks that so many sequences may take of so many rows, whatever their lengths: the rows before the first one and
// behind the last are two more. A block of sequence i has a number from its first row / block + i on.
constexpr uint32_t packed_blocks(uint32_t rows, uint32_t sequences, uint32_t block) {
  return rows / block + sequences + 2;
}

struct Flash {
  const void *q, *k, *v;
  void* out;
  float* lse;  // nullptr, or the logarithm of each query's sum of exponentials, (batch, heads, queries)

  // nullptr; or of one batch that is sequences of several lengths, one behind the other: where each begins and the
  // last one ends, in rows of q and out, and of k and v. int32, or int64 where they are wide.
  const void *q_begin, *k_begin;
  uint32_t sequences, wide_begins;
  uint32_t queries, keys;  // of all sequences
  uint32_t heads, heads_per_key;
  uint32_t size, value_size;  // of a head: multiples of 8
  uint32_t blocks;            // of queries in a head: the grid is as many times all heads
  Causal causal;
  float scale;
  FlashStrides q_strides, k_strides, v_strides, out_strides;

  // For the general kernels and those of gradients only. Sequences have no mask.
  const void* mask;
  MaskKind mask_kind;
  FlashStrides mask_strides;
  int64_t mask_column;
  Dropout dropout;
};

// Gradients, from the results and logarithms of `p`, which has no sequences, and the gradients of the results.
// Blocks of 64 queries or keys: the grid is p.blocks, of the rows of q or of k, times all heads of them.
struct FlashBackward {
  Flash p;
  const void* d_out;
  float* delta;  // of each query: the sum of its results times their gradients, (batch, heads, queries)
  void *d_q, *d_k, *d_v;
  FlashStrides d_out_strides, d_q_strides, d_k_strides, d_v_strides;
};
inline constexpr int flash_backward_block = 64, flash_backward_threads = 128;
inline constexpr int flash_backward_scores = 32;  // of a thread at once
constexpr int flash_backward_tile_bytes(int size) { return 4 * flash_backward_block * size * 2; }
constexpr int flash_backward_shared_bytes(int size, bool has_mask) {
  return flash_backward_tile_bytes(size) + (has_mask ? flash_backward_scores * flash_backward_threads * 4 : 0);
}

// The kernels for Hopper, for heads of up to `size` elements, 64 or 128: one warp group brings keys and values,
// each of two takes 64 queries.
struct FlashHopperShape {
  int size;

  static constexpr int threads = 3 * 128, queries = 2 * 64, keys = 128, stages = 2;
  static constexpr int alignment = 1024;  // of tiles in shared memory
  constexpr int shared_bytes() const {
    return (queries + 2 * stages * keys) * size * 2 + (1 + 4 * stages) * 8 + alignment;
  }
};
inline constexpr uint32_t most_hopper_size = 128;
// Tiles of 64 columns of (columns, rows, heads, batches), where heads or batches that are broadcast are one.
struct FlashMaps {
  TensorMap q, k, v;
  Flash p;
};
}  // namespace gpu
