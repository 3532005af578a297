// linear and an activation in one product of cuBLASLt. The op's body serves what its epilogues do not.
#include <algorithm>
#include <limits>
#include <optional>

#include "device/errors.hpp"
#include "dtypes.hpp"
#include "launch.hpp"
#include "rows.hpp"
#include "tf32.hpp"

namespace gpu {
namespace {
using cublaslt::Activation;

// What the host gives every operand, so that an algorithm for some shapes serves all calls of them.
constexpr unsigned align_log2 = cublaslt::bias_align_log2;

struct Answer {
  std::optional<cublaslt::Product> product;
  const char* reason;
};
Answer refused(const char* reason) { return {std::nullopt, reason}; }

// How exact its tanh is nobody says. The hardware's own errs by 2**-11, half an ulp of a sum in float16: too much
// for float32.
Activation activation_of(const dvt_call* c) {
  const dvt::Attrs attrs(c);
  if (attrs.is(0, "relu")) return Activation::relu;
  return attrs.is(0, "gelu_tanh") && c->in[0]->dtype.bits == 16 ? Activation::gelu_tanh : Activation::none;
}

Answer product_of(const dvt_call* c) {
  const DLTensor &x = *c->in[0], &w = *c->in[1];
  cublaslt::Product p = {};
  p.k = w.shape[1], p.n = w.shape[0], p.batch = 1;
  const auto elements = int64_t(dvt::size(c->out[0]));
  if (!elements || !p.k) return refused("there is nothing to multiply");
  if (!dvt::is_dense(&w)) return refused("the weight is not row-major: a copy of it may cost more than is won");
  p.m = elements / p.n;
  if (std::max({p.m, p.n, p.k}) > std::numeric_limits<int32_t>::max())
    return refused("cuBLASLt counts to 2**31 - 1");
  p.type = x.dtype, p.has_bias = dvt::has_in(c, 2), p.activation = activation_of(c);
  if (p.activation == Activation::none)
    return refused("cuBLASLt's epilogues are relu, and for 16 bits gelu with a tanh");
  p.a = {p.k, 0, 0}, p.b = {p.k, 1, 0}, p.c_step = elements;
  p.allows_tf32 = dvt::same(p.type, dvt::f32) && allows_tf32();
  p.alignment = int64_t{1} << align_log2;
  return {p, nullptr};
}

dvt_status query(dvt_device* d, const dvt_call* c, dvt_answer* answer) {
  return guarded(d, [&]() -> dvt_status {
    const auto [product, reason] = cublaslt::is_available() ? product_of(c) : refused(cublaslt::unavailable());
    const auto workspace = product ? d->cublaslt.workspace(*product, d->capability) : std::nullopt;
    if (workspace) {
      DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
      DVT_PUT(answer, dvt_answer, workspace, *workspace);
      return DVT_OK;
    }
    DVT_PUT(answer, dvt_answer, reason, reason ? reason : "cuBLASLt has no algorithm for these sizes");
    return DVT_UNSUPPORTED;
  });
}

dvt_status run(dvt_device* d, const dvt_call* c) {
  return guarded(d, [&]() -> dvt_status {
    const auto in = [&](uint32_t i) { return dvt::has_in(c, i) ? dvt::data<const void>(c->in[i]) : nullptr; };
    const cublaslt::Addresses at = {in(0), in(1), in(2), dvt::data<void>(c->out[0])};
    if (!d->cublaslt.run(product_of(c).product.value(), at, c->workspace, c->workspace_size,
                         stream_of(d, c->stream).handle))
      return DVT_FAIL(DVT_INTERNAL, "cuBLASLt has lost the algorithm that it had for these sizes");
    return finish(d, c);
  });
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : floats) {
    if (!cublaslt::adds_bias(type)) continue;
    dvt::Row row("dvt.linear_with_activation", run);
    row.in(type, 0, align_log2).in(type, DVT_O_STRIDED, align_log2).in(type, DVT_O_OPTIONAL, align_log2).out(type);
    table.add(row.engine("cublaslt").query(query));
  }
}
}  // namespace gpu
