#include "gpu/backend.hpp"
#include "device/device.hpp"

namespace {
dvt_backend make_table() {
  dvt_backend b = gpu::make_table("xpu", "compiler " __VERSION__);
  b.device_reset = gpu::device_reset;
  return b;
}
}  // namespace

extern "C" dvt_status dvt_backend_v1(const dvt_host* host, const dvt_backend** out) {
  return gpu::serve<make_table>(host, out);
}
