#include "gpu/backend.hpp"

namespace {
// No device_reset: it would also remove what other libraries have in the same context, and CUDA's manual asks for a
// new process.
dvt_backend make_table() { return gpu::make_table("cuda", "CUDA " GPU_TOOLKIT_VERSION ", compiler " __VERSION__); }
}  // namespace

extern "C" dvt_status dvt_backend_v1(const dvt_host* host, const dvt_backend** out) {
  return gpu::serve<make_table>(host, out);
}
