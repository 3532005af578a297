#include "linear.hpp"

#include <algorithm>
#include <limits>

#include "device/errors.hpp"
#include "launch.hpp"

namespace gpu {
LinearProduct linear_product(const dvt_call* c) {
  const DLTensor& w = *c->in[1];
  cublaslt::Product p = {};
  p.k = w.shape[1], p.n = w.shape[0], p.batch = 1;
  const auto elements = int64_t(dvt::size(c->out[0]));
  if (!elements || !p.k) return refused("there is nothing to multiply");
  if (!dvt::is_dense(&w)) return refused("the weight is not row-major: a copy of it may cost more than is won");
  p.m = elements / p.n;
  if (std::max({p.m, p.n, p.k}) > std::numeric_limits<int32_t>::max())
    return refused("cuBLASLt counts to 2**31 - 1");
  p.a = {p.k, 0, 0}, p.b = {p.k, 1, 0}, p.c_step = elements;
  p.alignment = int64_t{1} << linear_align_log2;
  return {p, nullptr};
}

dvt_status query_linear(dvt_device* d, const LinearProduct& asked, dvt_answer* answer) {
  return guarded(d, [&]() -> dvt_status {
    const auto [product, reason] = cublaslt::is_available() ? asked : refused(cublaslt::unavailable());
    if (const auto workspace = product ? d->cublaslt.workspace(*product) : std::nullopt) {
      DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
      DVT_PUT(answer, dvt_answer, workspace, *workspace);
      return DVT_OK;
    }
    DVT_PUT(answer, dvt_answer, reason, reason ? reason : "cuBLASLt has no algorithm for these sizes");
    return DVT_UNSUPPORTED;
  });
}

dvt_status enqueue_linear(dvt_device* d, const dvt_call* c, const LinearProduct& p, const cublaslt::Addresses& at,
                          void* workspace, uint64_t bytes) {
  if (d->cublaslt.run(p.product.value(), at, workspace, bytes, stream_of(d, c->stream).handle)) return DVT_OK;
  return DVT_FAIL(DVT_INTERNAL, "cuBLASLt found no algorithm for these sizes, though the query had found one");
}

dvt_status run_linear(dvt_device* d, const dvt_call* c, const LinearProduct& p, const cublaslt::Addresses& at) {
  return guarded(d, [&]() -> dvt_status {
    if (dvt_status s = enqueue_linear(d, c, p, at, c->workspace, c->workspace_size)) return s;
    return finish(d, c);
  });
}
}  // namespace gpu
