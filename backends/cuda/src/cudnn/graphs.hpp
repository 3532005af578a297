// What cuDNN is asked to compute, as plain data: the keys of caches of plans, so all of it counts and there are no
// gaps in it. Whoever fills one in begins with `= {}`.
#pragma once
#include <cstdint>

#include "dovetail/abi.h"

namespace gpu::cudnn {
// Sizes and strides in elements. size[0] == 0: there is no such operand.
struct Operand {
  int64_t size[4], stride[4];
};

// Attention: o = softmax(scale q k^T + bias) v, (batch, heads, rows, columns) each; or its gradients.
struct AttentionGraph {
  enum Flag : uint64_t {
    causal = 1,         // a row sees the columns up to its own number
    log_sum_exp = 2,    // a second result: float32 (batch, heads, rows, 1), what the backward graph asks for
    lengths = 4,        // of each batch's rows and columns, that differ: what is behind them is not looked at
    ragged = 8,         // besides, sequences lie one behind the other: each begins at an offset of its own
    backward = 16,      // d_q, d_k, d_v, shaped and laid out as q, k, v
    deterministic = 32  // of `backward`: the same bits every time, for more workspace
  };
  uint64_t flags;
  DLDataType type, bias_type;  // float16 or bfloat16; of the bias float32, too
  Operand q, k, v, o;          // q may have a multiple of the heads of k and v
  Operand bias;                // added to the scores; of size 1 along axes along which it is the same
  double scale, dropout;       // dropout: the probability with which a weight becomes 0
};
// The operands of a call. Masks that are true or false are for the caller to make a bias of.
enum AttentionOperand {
  attention_q,
  attention_k,
  attention_v,
  attention_bias,
  attention_q_lengths,   // int32 (batch)
  attention_kv_lengths,  // int32 (batch)
  attention_q_offsets,   // int32 (batch + 1), in elements: of q and o
  attention_kv_offsets,  // int32 (batch + 1), in elements: of k and v
  attention_seed,        // int64, of dropout, on the device
  attention_offset,      // int64, likewise
  attention_o,
  attention_log_sum_exp,
  attention_d_o,
  attention_d_q,
  attention_d_k,
  attention_d_v
};

// Convolution (strictly, cross-correlation) of images x (N, C, H, W) with weights (O, C / groups, h, w), plus a bias
// (O) where it is wanted. The groups follow from the sizes.
struct ConvolutionGraph {
  DLDataType type;
  uint32_t has_bias;
  Operand x, weight, y;
  int64_t padding[2], step[2], dilation[2];
  int64_t allows_tf32;  // of float32: may it be computed with 10 bits of mantissa?
};
enum ConvolutionOperand { convolution_x, convolution_weight, convolution_bias, convolution_y };

inline constexpr int most_operands = attention_d_v + 1;
// The addresses of operands by their numbers; those that a graph has not are not looked at.
struct Pointers {
  void* at[most_operands];

  void set(int operand, const void* data) { at[operand] = const_cast<void*>(data); }
};
}  // namespace gpu::cudnn
