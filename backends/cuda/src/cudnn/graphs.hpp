// Graphs that cuDNN makes execution plans for, and the plans. Attention, for example:
//
//   AttentionGraph g = {};  // a key of a cache: all of it counts
//   g.type = dvt::bf16, g.q = ..., g.scale = ..., g.flags = AttentionGraph::causal;
//   if (const PlanRef p = plan(d, g)) answer the query: supported, workspace(*p)
//   Pointers at = {};
//   at.set(attention_q, data) ...; return run(d, c, *p, at, c->workspace);
//
// Operands must begin at multiples of 16 bytes, and their rows be multiples of 16 bytes apart.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "dovetail/abi.h"

namespace gpu::cudnn {
// Sizes and strides of an operand, in elements. size[0] == 0: there is no such operand.
struct Operand {
  int64_t size[4], stride[4];
};
// The addresses of operands by their numbers; numbers that the graph does not use are ignored.
struct Pointers {
  static constexpr int most = 16;
  void* at[most];

  void set(int operand, const void* data) { at[operand] = const_cast<void*>(data); }
};

class Plan;
using PlanRef = std::shared_ptr<const Plan>;

size_t workspace(const Plan&);    // bytes that run() wants
std::string engine(const Plan&);  // its name and the choices made for it
// Enqueues it on the call's stream. Safe in captures and from several threads.
dvt_status run(dvt_device*, const dvt_call*, const Plan&, const Pointers&, void* workspace);

// ---- attention --------------------------------------------------------------------------

// o = softmax(scale q k^T + bias) v, of (batch, heads, rows, columns) each; or its gradients.
struct AttentionGraph {
  enum Flag : uint64_t {
    causal = 1,         // a row sees the columns up to its own number
    log_sum_exp = 2,    // a second result: float32 (batch, heads, rows, 1), which the backward graph asks for
    lengths = 4,        // each batch has its own numbers of rows and columns: what is behind them is not looked at
    ragged = 8,         // and its own place in memory, one behind the other
    backward = 16,      // d_q, d_k, d_v, shaped and laid out as q, k, v
    deterministic = 32  // of `backward`: the same bits every time, for much more workspace
  };
  uint64_t flags;
  DLDataType type, bias_type;  // float16 or bfloat16; of the bias float32, too
  Operand q, k, v, o;          // q may have a multiple of the heads of k and v
  Operand bias;                // added to the scores; of size 1 along axes along which it is the same
  double scale, dropout;       // dropout: the probability with which a weight becomes 0
};
// Masks that are true or false are for the caller to make a bias of.
enum AttentionOperand {
  attention_q,
  attention_k,
  attention_v,
  attention_bias,
  attention_q_lengths,   // int32 (batch); of `lengths` and `ragged`
  attention_kv_lengths,  // int32 (batch)
  attention_q_offsets,   // int32 (batch + 1), in elements: where a batch of q and o begins; of `ragged`
  attention_kv_offsets,  // int32 (batch + 1): of k and v
  attention_seed,        // int64, on the device; of dropout
  attention_offset,      // int64
  attention_o,
  attention_log_sum_exp,
  attention_d_o,  // here and below: of `backward`
  attention_d_q,
  attention_d_k,
  attention_d_v
};

// From the device's cache, or made now, which takes up to a second. nullptr where cuDNN is absent, as under the
// emulator, or has no engine for it.
PlanRef plan(dvt_device*, const AttentionGraph&);

// ---- convolution (strictly, cross-correlation) ------------------------------------------

// Images x (N, C, H, W), weights (O, C / groups, h, w), and a bias (O) where it is wanted. Groups follow from the
// sizes.
struct ConvolutionGraph {
  DLDataType type;
  uint32_t has_bias;
  Operand x, weight, y;
  int64_t padding[2], step[2], dilation[2];
  int64_t allows_tf32;  // of float32: may it be computed with 10 bits of mantissa?
};
enum ConvolutionOperand { convolution_x, convolution_weight, convolution_bias, convolution_y };

PlanRef plan(dvt_device*, const ConvolutionGraph&);
}  // namespace gpu::cudnn
