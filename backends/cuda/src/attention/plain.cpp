#include <algorithm>
#include <array>
#include <string>

#include "attention/call.hpp"
#include "gpu/by_type.hpp"
#include "kernels/common/attention.hpp"
#include "launch.hpp"

namespace gpu::attention {
namespace {
constinit std::array<KernelId, type_count> kernels{};

AttentionStrides all_strides(const DLTensor* t) {
  AttentionStrides s{};
  const auto stride = [t](int from_end) {
    const int axis = t->ndim - from_end;
    return axis < 0 || t->shape[axis] == 1 ? 0 : t->strides[axis];
  };
  s.row = stride(2), s.column = stride(1);
  for (int i = 0; i + 2 < t->ndim; ++i) s.batch[i] = stride(3 + i);
  return s;
}

dvt_status run(dvt_device* d, const dvt_call* c) {
  const Call call(c);
  const int bytes = int(computed_bytes(c->out[0]->dtype));
  const auto block = uint64_t(attention_block(bytes));
  Attention p{};
  p.queries = uint64_t(call.queries), p.keys = uint64_t(call.keys);
  p.size = uint64_t(call.size), p.value_size = uint64_t(call.value_size);
  p.blocks = (p.queries + block - 1) / block;
  p.heads_per_key = uint32_t(call.heads_per_key());
  p.causal = call.causal, p.scale = call.scale, p.mask_kind = *mask_kind(call.mask);
  p.q = all_strides(call.q), p.k = all_strides(call.k), p.v = all_strides(call.v);
  if (call.mask) p.mask = all_strides(call.mask);
  p.lse = call.lse_data(), p.dropout = call.dropout();
  p.axes = uint32_t(call.out->ndim - 2);
  for (uint32_t i = 0; i < p.axes; ++i) p.batch[i] = uint32_t(call.out->shape[p.axes - 1 - i]);

  Grid grid = grid_of_blocks(p.blocks * uint64_t(call.heads * call.batches), block_size);
  grid.shared_bytes = uint32_t(attention_shared_bytes(bytes));
  grid.blocks.y = std::max(1u, uint32_t((p.value_size + block - 1) / block));  // of no values there are logarithms
  return launch(d, c, kernels[type_index(call.out->dtype)], grid, dvt::data<void>(call.q), dvt::data<void>(call.k),
                dvt::data<void>(call.v), call.mask ? dvt::data<void>(call.mask) : nullptr,
                dvt::data<void>(call.out), p);
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  if (!mask_kind(Call(c).mask)) return refuse(answer, "the mask is neither bool nor a float");
  return accept(answer);
}
}  // namespace

void add_plain(dvt::KernelTable& table, Op op, DLDataType type) {
  kernels[type_index(type)] = find_kernel("attention", type);
  table.add(row_of(op, type, run).query(query).deterministic());
}
}  // namespace gpu::attention
