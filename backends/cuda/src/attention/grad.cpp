#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "attention/call.hpp"
#include "gpu/dtypes.hpp"
#include "launch.hpp"

namespace gpu::attention {
namespace {
enum GradOperand { result = 3, logsumexp, result_grad, grad_mask };  // behind q, k and v

constexpr int sizes[] = {64, 128};  // heads of up to so many elements
struct Kernels {
  KernelId deltas, queries[std::size(sizes)], keys[std::size(sizes)];
};
constinit std::array<Kernels, type_count> kernels{};

// Both kernels take blocks of as many rows: one of queries, the other of keys.
constexpr FlashShape block_shape{sizes[1], flash_backward_threads / 32, 1, flash_backward_block};
static_assert(block_shape.queries() == flash_backward_block);

// Here `out` and `lse` are the call's operands.
struct GradCall : Call {
  const DLTensor *d_out, *d_q, *d_k, *d_v;

  explicit GradCall(const dvt_call* c)
      : Call(c, grad_mask), d_out(c->in[result_grad]), d_q(c->out[0]), d_k(c->out[1]), d_v(c->out[2]) {
    out = c->in[result], lse = c->in[logsumexp];
  }
  int64_t matrices() const { return batches * heads; }
  int64_t key_matrices() const { return batches * key_heads; }
  size_t size_number() const { return std::max(size, value_size) > sizes[0]; }
};

const char* refusal(const GradCall& call) {
  if (std::max(call.size, call.value_size) > sizes[1] || call.size % 8 || call.value_size % 8)
    return "head sizes are not multiples of 8 up to 128";
  if (!call.heads) return "there are no heads of queries";
  if (!std::isfinite(float(call.scale))) return "the scale is not finite";
  if (const char* reason = flash_refusal(block_shape, call.queries, call.keys, -1, call.matrices())) return reason;
  if (const char* reason = flash_refusal(block_shape, call.keys, call.queries, -1, call.key_matrices()))
    return reason;
  return flash_mask_refusal(call);
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const GradCall call(c);
  if (const char* reason = refusal(call)) return refuse(answer, reason);
  const uint64_t operands = unaligned(call) | uint64_t{!is_aligned(call.out, call)} << result |
                            uint64_t{!is_aligned(call.d_out, call)} << result_grad;
  if (operands) return refuse(answer, unaligned_reason, operands);
  return accept(answer, uint64_t(call.matrices() * call.queries) * sizeof(float));  // delta
}

FlashBackward describe_backward(const GradCall& call, void* workspace) {
  FlashBackward b{};
  b.p = describe(call), b.delta = static_cast<float*>(workspace);
  b.d_out = dvt::data<void>(call.d_out), b.d_out_strides = flash_strides(call.d_out, call);
  b.d_q = dvt::data<void>(call.d_q), b.d_q_strides = flash_strides(call.d_q, call);
  b.d_k = dvt::data<void>(call.d_k), b.d_k_strides = flash_strides(call.d_k, call);
  b.d_v = dvt::data<void>(call.d_v), b.d_v_strides = flash_strides(call.d_v, call);
  return b;
}

dvt_status run(dvt_device* d, const dvt_call* c) {
  const GradCall call(c);
  FlashBackward b = describe_backward(call, c->workspace);
  const auto launch_blocks = [&](KernelId kernel, int64_t rows, int64_t matrices, int shared_bytes) -> dvt_status {
    b.p.blocks = uint32_t((rows + flash_backward_block - 1) / flash_backward_block);
    const Grid grid{{uint32_t(b.p.blocks * matrices)}, {flash_backward_threads}, uint32_t(shared_bytes)};
    return grid.blocks.x ? launch(d, c, kernel, grid, b) : DVT_OK;
  };
  const Kernels& of_type = kernels[type_index(call.q->dtype)];
  const size_t i = call.size_number();
  const int bytes = flash_backward_shared_bytes(sizes[i], call.mask);
  if (const auto failed = launch_blocks(of_type.deltas, call.queries, call.matrices(), 0)) return failed;
  if (const auto failed = launch_blocks(of_type.queries[i], call.queries, call.matrices(), bytes)) return failed;
  return launch_blocks(of_type.keys[i], call.keys, call.key_matrices(), bytes);
}
}  // namespace

void add_grad(dvt::KernelTable& table, DLDataType type) {
  if (type.bits != 16) return;
  const std::string name = type_name(type);
  Kernels& of_type = kernels[type_index(type)];
  of_type.deltas = find_kernel("flash_deltas_" + name);
  for (size_t i = 0; i < std::size(sizes); ++i) {
    const std::string end = name + "_" + std::to_string(sizes[i]);
    of_type.queries[i] = find_kernel("flash_query_gradients_" + end);
    of_type.keys[i] = find_kernel("flash_key_gradients_" + end);
  }
  dvt::Row row("dvt.scaled_dot_product_attention_grad", run);
  for (int i = 0; i < 3; ++i) row.in(type, DVT_O_STRIDED, align_16);
  row.in(type, DVT_O_STRIDED, align_16).in(dvt::f32).in(type, DVT_O_STRIDED, align_16);
  row.in(dvt::any(0), DVT_O_STRIDED | DVT_O_OPTIONAL).in(dvt::u32, DVT_O_OPTIONAL);
  for (int i = 0; i < 3; ++i) row.out(type, 0, align_16);
  table.add(row.engine("flash").query(query).deterministic());
}
}  // namespace gpu::attention
