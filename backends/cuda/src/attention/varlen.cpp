#include "attention/call.hpp"
#include "gpu/dtypes.hpp"

namespace gpu::attention {
namespace {
enum PackedOperand { cu_seq_q = 3, cu_seq_k };  // behind q, k and v, which are (tokens, heads, size)

int64_t sequences_of(const dvt_call* c) { return c->in[cu_seq_q]->shape[0] - 1; }

FlashStrides packed_strides(const DLTensor* t) {
  return {0, t->shape[1] == 1 ? 0 : t->strides[1], t->shape[0] == 1 ? 0 : t->strides[0]};
}
bool is_aligned(const DLTensor* t) {
  const int64_t chunk = 128 / t->dtype.bits;
  const FlashStrides s = packed_strides(t);
  return (t->shape[2] <= 1 || t->strides[2] == 1) && s.head % chunk == 0 && s.row % chunk == 0;
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const DLTensor *q_ = c->in[q], *k_ = c->in[k], *v_ = c->in[v];
  if (const char* reason = flash_refusal(q_->shape[2], v_->shape[2])) return refuse(answer, reason);
  const FlashShape shape = shape_of(q_->shape[2], v_->shape[2]);
  if (const char* reason = flash_refusal(shape, q_->shape[0], k_->shape[0], sequences_of(c), q_->shape[1]))
    return refuse(answer, reason);
  uint64_t operands = 0;
  for (const Operand i : {q, k, v}) operands |= uint64_t{!is_aligned(c->in[i])} << i;
  return operands ? refuse(answer, unaligned_reason, operands) : accept(answer);
}

dvt_status run(dvt_device* d, const dvt_call* c) {
  const DLTensor *q_ = c->in[q], *k_ = c->in[k], *v_ = c->in[v], *begins = c->in[cu_seq_q];
  const dvt::Attrs a(c);
  Flash p{};
  p.q = dvt::data<void>(q_), p.k = dvt::data<void>(k_), p.v = dvt::data<void>(v_);
  p.out = dvt::data<void>(c->out[0]);
  p.q_begin = dvt::data<void>(begins), p.k_begin = dvt::data<void>(c->in[cu_seq_k]);
  p.sequences = uint32_t(sequences_of(c)), p.wide_begins = begins->dtype.bits == 64;
  p.queries = uint32_t(q_->shape[0]), p.keys = uint32_t(k_->shape[0]);
  p.heads = uint32_t(q_->shape[1]), p.heads_per_key = k_->shape[1] ? p.heads / uint32_t(k_->shape[1]) : 1;
  p.size = uint32_t(q_->shape[2]), p.value_size = uint32_t(v_->shape[2]);
  p.causal = a.boolean(0) ? causal_top_left : causal_none, p.scale = float(a.f64(1, 1));
  p.q_strides = packed_strides(q_), p.k_strides = packed_strides(k_), p.v_strides = packed_strides(v_);
  p.out_strides = packed_strides(c->out[0]);
  return launch_flash(d, c, q_->dtype, p, q_->shape[1]);
}
}  // namespace

void add_varlen(dvt::KernelTable& table, DLDataType type) {
  if (type.bits != 16) return;
  for (const DLDataType offset : {dvt::i32, dvt::i64}) {
    dvt::Row row("dvt.scaled_dot_product_attention_varlen", run);
    for (int i = 0; i < 3; ++i) row.in(type, DVT_O_STRIDED, align_16);
    table.add(row.in(offset).in(offset).out(type, 0, align_16).engine("flash").query(query).deterministic());
  }
}
}  // namespace gpu::attention
