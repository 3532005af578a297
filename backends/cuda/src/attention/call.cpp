#include "attention/call.hpp"

#include <cmath>

namespace gpu::attention {
Call::Call(const dvt_call* c, int mask_)
    : q(c->in[0]),
      k(c->in[1]),
      v(c->in[2]),
      mask(dvt::has_in(c, mask_) ? c->in[mask_] : nullptr),
      dropout_key(dvt::has_in(c, mask_ + 1) ? c->in[mask_ + 1] : nullptr),
      out(c->out[0]),
      lse(c->n_out > 1 ? c->out[1] : nullptr) {
  const dvt::Attrs a(c);
  const int rank = q->ndim;
  causal = a.boolean(0), scale = a.f64(1, 1), dropout_p = a.f64(3);
  queries = q->shape[rank - 2], size = q->shape[rank - 1];
  keys = k->shape[rank - 2], value_size = v->shape[rank - 1];
  heads = rank > 2 ? q->shape[rank - 3] : 1, key_heads = rank > 2 ? k->shape[rank - 3] : 1;
  batches = 1;
  for (int axis = 0; axis < rank - 3; ++axis) batches *= q->shape[axis];
}

// A float32 is drawn for each weight, and compared with the probability as one.
Dropout Call::dropout() const {
  if (dropout_p == 0) return {};
  const auto below = uint32_t(std::ceil(std::ldexp(float(dropout_p), 24)));
  return {dvt::data<uint32_t>(dropout_key), below, dropout_p == 1 ? 1 : 1 / (1 - dropout_p)};
}

std::optional<Strides> strides_of(const DLTensor* t, const Call& call) {
  const auto stride = [t](int from_end) {
    const int axis = t->ndim - from_end;
    return axis < 0 || t->shape[axis] == 1 ? 0 : t->strides[axis];
  };
  Strides s{0, stride(3), stride(2), stride(1)};
  int64_t merged = 1;
  for (int from_end = 4; from_end <= call.q->ndim; ++from_end) {
    const int64_t size = call.q->shape[call.q->ndim - from_end], step = stride(from_end);
    if (size == 1) continue;
    if (merged == 1) s.batch = step;
    else if (step != s.batch * merged) return {};
    merged *= size;
  }
  return s;
}

dvt::Row row_of(Op op, DLDataType type, dvt::Row::Run run, unsigned align_log2) {
  const bool has_lse = op == Op::with_logsumexp;
  dvt::Row row(has_lse ? "dvt.scaled_dot_product_attention_with_logsumexp" : "dvt.scaled_dot_product_attention",
               run);
  for (int i = 0; i < 3; ++i) row.in(type, DVT_O_STRIDED, align_log2);
  row.in(dvt::any(0), DVT_O_STRIDED | DVT_O_OPTIONAL);
  if (!has_lse) return row.out(type, 0, align_log2);
  row.in(dvt::u32, DVT_O_OPTIONAL);
  return row.out(type, 0, align_log2).out(type.bits == 64 ? dvt::f64 : dvt::f32, 0, align_log2);
}

bool is_aligned(const DLTensor* t, const Call& call) {
  const int64_t chunk = 128 / t->dtype.bits, columns = t->shape[t->ndim - 1];
  const auto s = strides_of(t, call);
  return s && (columns <= 1 || s->column == 1) && s->batch % chunk == 0 && s->head % chunk == 0 &&
         s->row % chunk == 0;
}

uint64_t unaligned(const Call& call) {
  return uint64_t{!is_aligned(call.q, call)} << Operand::q | uint64_t{!is_aligned(call.k, call)} << Operand::k |
         uint64_t{!is_aligned(call.v, call)} << Operand::v;
}

std::optional<MaskKind> mask_kind(const DLTensor* mask) {
  if (!mask) return mask_none;
  if (dvt::same(mask->dtype, dvt::boolean)) return mask_bool;
  if (dvt::same(mask->dtype, dvt::f16)) return mask_f16;
  if (dvt::same(mask->dtype, dvt::bf16)) return mask_bf16;
  if (dvt::same(mask->dtype, dvt::f32)) return mask_f32;
  if (dvt::same(mask->dtype, dvt::f64)) return mask_f64;
  return {};
}

dvt_status refuse(dvt_answer* answer, const char* reason, uint64_t need_compact) {
  DVT_PUT(answer, dvt_answer, reason, reason);
  DVT_PUT(answer, dvt_answer, need_compact, need_compact);
  return DVT_UNSUPPORTED;
}

dvt_status accept(dvt_answer* answer, uint64_t workspace) {
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  DVT_PUT(answer, dvt_answer, workspace, workspace);
  return DVT_OK;
}
}  // namespace gpu::attention
