// FlashAttention's parameters: softmax(q k^T * scale + mask) v for each head of each batch. Shared with the host.
#pragma once
#include <cstdint>

namespace gpu {
enum MaskKind : uint32_t { mask_none, mask_bool, mask_f16, mask_bf16, mask_f32 };
// Which keys a query sees: all, those up to its own number, or up to it counted from the last query and key.
enum Causal : uint32_t { causal_none, causal_top_left, causal_bottom_right };

// Strides in elements; the last axis is dense. 0: broadcast.
struct FlashStrides {
  int64_t batch, head, row;
};

struct Flash {
  const void *q, *k, *v;
  void* out;
  float* lse;  // nullptr, or the logarithm of each query's sum of exponentials, (batch, heads, queries)

  // nullptr, or where the sequence of each batch begins and, one further, ends: rows of q and out, and of k and v.
  const int32_t *q_begin, *k_begin;
  uint32_t queries, keys;  // of the longest sequence
  uint32_t heads, heads_per_key;
  uint32_t size, value_size;  // of a head: multiples of 8
  uint32_t blocks;            // of queries in a head: the grid is as many times all heads
  Causal causal;
  float scale;
  FlashStrides q_strides, k_strides, v_strides, out_strides;

  // What only the general kernels look at.
  const void* mask;
  MaskKind mask_kind;
  FlashStrides mask_strides;
  int64_t mask_column;
  const uint32_t*
      key;  // nullptr, or of random_bits: which of the elements (batch, heads, queries, keys) are dropped
  uint32_t drop_below;  // words less than this
  float kept_scale;     // 1 / the probability to be kept
};
}  // namespace gpu
