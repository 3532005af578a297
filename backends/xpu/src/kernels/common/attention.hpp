// softmax(q k^T * scale + mask) v for each matrix of a batch. Shared with the host.
#pragma once
#include <cstdint>

namespace gpu {
inline constexpr int most_attention_axes = 14;
enum MaskKind : uint32_t { mask_none, mask_bool, mask_f16, mask_bf16, mask_f32 };

// Strides of an operand (..., rows, columns) in elements, of the batch's axes the innermost first; 0: broadcast.
struct AttentionStrides {
  int64_t row, column, batch[most_attention_axes];
};
struct Attention {
  uint64_t queries, keys, size, value_size;
  uint32_t heads_per_key;  // consecutive heads of q that share one of k and v
  uint32_t causal, mask_kind, axes;
  float scale;
  uint32_t batch[most_attention_axes];
  AttentionStrides q, k, v, mask;
};
}  // namespace gpu
