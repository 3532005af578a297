#include <algorithm>
#include <array>
#include <string>

#include "gpu/dtypes.hpp"
#include "kernels/common/attention.hpp"
#include "launch.hpp"

namespace gpu {
namespace {
struct Kernels {
  KernelId narrow, wide;  // tiles of 32 and 64 columns
};
constinit std::array<Kernels, type_count> kernels{};

// The strides of an operand (..., rows, columns).
AttentionStrides strides_of(const DLTensor* t) {
  AttentionStrides s{};
  const int n = t->ndim;
  const auto stride = [&](int axis) { return t->shape[axis] == 1 ? 0 : t->strides[axis]; };
  if (n >= 2) s.row = stride(n - 2);
  if (n >= 1) s.column = stride(n - 1);
  for (int i = 0; i + 2 < n; ++i) s.batch[i] = stride(n - 3 - i);
  return s;
}

MaskKind kind_of(const DLTensor* mask) {
  if (!mask) return mask_none;
  if (mask->dtype.code == DVT_BOOL) return mask_bool;
  if (mask->dtype.code == DVT_BFLOAT) return mask_bf16;
  return mask->dtype.bits == 16 ? mask_f16 : mask_f32;
}

dvt_status run(dvt_device* d, const dvt_call* c) {
  const DLTensor *q = c->in[0], *k = c->in[1], *v = c->in[2], *out = c->out[0];
  const DLTensor* mask = dvt::has_in(c, 3) ? c->in[3] : nullptr;
  const dvt::Attrs a(c);
  Attention p{};
  p.queries = uint64_t(q->shape[q->ndim - 2]), p.size = uint64_t(q->shape[q->ndim - 1]);
  p.keys = uint64_t(k->shape[k->ndim - 2]), p.value_size = uint64_t(v->shape[v->ndim - 1]);
  p.causal = a.boolean(0), p.scale = float(a.f64(1, 1)), p.mask_kind = kind_of(mask);
  p.heads_per_key = 1;
  if (q->ndim >= 3 && k->ndim >= 3 && k->shape[k->ndim - 3] > 1)
    p.heads_per_key = uint32_t(std::max<int64_t>(1, q->shape[q->ndim - 3] / k->shape[k->ndim - 3]));
  p.q = strides_of(q), p.k = strides_of(k), p.v = strides_of(v);
  if (mask) p.mask = strides_of(mask);
  size_t matrices = 1;
  p.axes = uint32_t(out->ndim - 2);
  for (uint32_t i = 0; i < p.axes; ++i) p.batch[i] = uint32_t(out->shape[p.axes - 1 - i]), matrices *= p.batch[i];

  constexpr size_t block = 64, side = 16;  // kernels/scaled_dot_product_attention.hpp
  const Kernels& by_width = kernels[type_index(q->dtype)];
  const size_t width = std::max(p.size, p.value_size) <= 32 ? 32 : 64;
  const Grid range{3,
                   {matrices, (p.queries + block - 1) / block * side, (p.value_size + width - 1) / width * side},
                   {1, side, side}};
  return launch(d, c, width == 32 ? by_width.narrow : by_width.wide, range, dvt::data<void>(q), dvt::data<void>(k),
                dvt::data<void>(v), mask ? dvt::data<void>(mask) : nullptr, dvt::data<void>(out), p);
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const DLTensor* mask = dvt::has_in(c, 3) ? c->in[3] : nullptr;
  const auto is = [&](DLDataType type) { return dvt::same(mask->dtype, type); };
  if (mask && !is(dvt::boolean) && !is(dvt::f16) && !is(dvt::bf16) && !is(dvt::f32)) {
    DVT_PUT(answer, dvt_answer, reason, "the mask is neither bool, float16, bfloat16 nor float32");
    return DVT_UNSUPPORTED;
  }
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  return DVT_OK;
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : {dvt::f16, dvt::bf16, dvt::f32}) {
    const std::string name = std::string("attention_") + type_name(type);
    kernels[type_index(type)] = {find_kernel(name + "_32"), find_kernel(name + "_64")};
    table.add(dvt::Row("dvt.scaled_dot_product_attention", run)
                  .in(type, DVT_O_STRIDED)
                  .in(type, DVT_O_STRIDED)
                  .in(type, DVT_O_STRIDED)
                  .in(dvt::any(0), DVT_O_STRIDED | DVT_O_OPTIONAL)
                  .out(type)
                  .query(query)
                  .deterministic());
  }
}
}  // namespace gpu
