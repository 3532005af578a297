// softmax(q k^T * scale + mask) v for each matrix of a batch. Shared with the host.
#pragma once
#include <cstdint>

namespace gpu {
inline constexpr int most_attention_axes = 14;
enum MaskKind : uint32_t { mask_none, mask_bool, mask_f16, mask_bf16, mask_f32, mask_f64 };

// Queries, keys and columns of values of a block of 16 x 16 threads, by the type in which they are computed with;
// and the shared memory of its tiles.
constexpr int attention_block(int bytes) { return bytes == 8 ? 32 : 64; }
constexpr int attention_shared_bytes(int bytes) {
  const int block = attention_block(bytes);
  return (2 + block / 16) * 16 * (block + 1) * bytes;
}

// Which weights become 0: those at whose number in (batch, heads, queries, keys) uniform(key, ..., float32) is less
// than a probability.
struct Dropout {
  const uint32_t* key = nullptr;  // of random_bits; nullptr: none
  uint32_t below = 0;             // 24 bits: the probability times 2^24, rounded up
  double kept_scale = 1;          // of the others
};

// Strides of an operand (..., rows, columns) in elements, of the batch's axes the innermost first; 0: broadcast.
struct AttentionStrides {
  int64_t row, column, batch[most_attention_axes];
};
struct Attention {
  uint64_t queries, keys, size, value_size;
  uint64_t blocks;  // of queries in a matrix: the grid is as many times all matrices, and blocks of value_size
  uint32_t heads_per_key;  // consecutive heads of q that share one of k and v
  uint32_t causal, axes;
  MaskKind mask_kind;
  double scale;
  uint32_t batch[most_attention_axes];
  AttentionStrides q, k, v, mask;
  void* lse;  // nullptr, or the logarithm of each query's sum of exponentials, in the type computed with
  Dropout dropout;
};
}  // namespace gpu
