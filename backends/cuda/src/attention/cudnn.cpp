#include <cmath>

#include "attention/call.hpp"
#include "cudnn/graphs.hpp"
#include "device/device.hpp"

namespace gpu::attention {
namespace {
cudnn::Operand operand(const DLTensor* t, const Strides& s, int64_t batches, int64_t heads) {
  const int64_t rows = t->shape[t->ndim - 2], columns = t->shape[t->ndim - 1];
  return {{batches, heads, rows, columns}, {s.batch, s.head, s.row, 1}};
}

// Nothing where it cannot be described.
std::optional<cudnn::AttentionGraph> graph_of(const Call& call) {
  const auto q = strides_of(call.q, call), k = strides_of(call.k, call), v = strides_of(call.v, call),
             o = strides_of(call.out, call);
  if (!q || !k || !v || !o) return {};
  cudnn::AttentionGraph g = {};
  if (call.causal) g.flags |= cudnn::AttentionGraph::causal;
  if (call.lse) g.flags |= cudnn::AttentionGraph::log_sum_exp;
  g.type = call.q->dtype, g.scale = call.scale;
  g.q = operand(call.q, *q, call.batches, call.heads), g.o = operand(call.out, *o, call.batches, call.heads);
  g.k = operand(call.k, *k, call.batches, call.key_heads), g.v = operand(call.v, *v, call.batches, call.key_heads);
  return g;
}

dvt_status run(dvt_device* d, const dvt_call* c) {
  const Call call(c);
  const auto graph = graph_of(call);
  const cudnn::PlanRef plan = graph ? cudnn::plan(d, *graph) : nullptr;
  if (!plan) return DVT_FAIL(DVT_INTERNAL, "cuDNN has no engine for an attention that it had one for");
  cudnn::Pointers at = {};
  at.set(cudnn::attention_q, dvt::data<const void>(c->in[Operand::q]));
  at.set(cudnn::attention_k, dvt::data<const void>(c->in[Operand::k]));
  at.set(cudnn::attention_v, dvt::data<const void>(c->in[Operand::v]));
  at.set(cudnn::attention_o, dvt::data<const void>(c->out[0]));
  at.set(cudnn::attention_log_sum_exp, call.lse_data());
  return cudnn::run(d, c, *plan, at, c->workspace);
}

// Its graph has plans for masks (tests/test_cudnn_plans.py), but it adds them to the scores, where NaN stays NaN,
// and its manual does not document the result for a row of nothing but -inf.
dvt_status query(dvt_device* d, const dvt_call* c, dvt_answer* answer) {
  const Call call(c);
  if (d->capability < 90) return refuse(answer, "cuDNN is the fastest from Hopper on only");
  if (call.dropout_p > 0)
    return refuse(answer, "cuDNN draws its own dropout mask, which dropout_key does not determine");
  if (call.mask && dvt::same(call.mask->dtype, dvt::boolean))
    return refuse(answer, "it adds masks to the scores: False would not hide NaN");
  if (!(call.scale > 0 && std::isfinite(call.scale)))
    return refuse(answer, "it hides padding by -inf before it scales: expected a positive scale");
  if (call.mask)
    return refuse(answer, "its result for a row whose mask is -inf everywhere is not documented to be 0");
  if (!call.batches || !call.heads || !call.queries || !call.keys || !call.size || !call.value_size)
    return refuse(answer, "an operand is empty");
  if (const char* why = cudnn::unavailable()) return refuse(answer, why);
  const int64_t chunk = 128 / call.q->dtype.bits;
  if (call.size % chunk || call.value_size % chunk) return refuse(answer, "head sizes are not multiples of 8");
  if (const uint64_t operands = unaligned(call)) return refuse(answer, unaligned_reason, operands);
  const auto graph = graph_of(call);
  const cudnn::PlanRef plan = graph ? cudnn::plan(d, *graph) : nullptr;
  return plan ? accept(answer, cudnn::workspace(*plan)) : refuse(answer, "cuDNN has no engine for these sizes");
}
}  // namespace

void add_cudnn(dvt::KernelTable& table, Op op, DLDataType type) {
  if (type.bits == 16) table.add(row_of(op, type, run, align_16).engine("cudnn").query(query));
}
}  // namespace gpu::attention
