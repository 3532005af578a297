// The backend's table.
#include <exception>

#include "device/functions.hpp"
#include "rows.hpp"

#ifndef BACKEND_VERSION
#define BACKEND_VERSION "0"
#endif

namespace {
dvt_backend make_table(const dvt::KernelTable& kernels) {
  dvt_backend b{};
  b.struct_size = sizeof b;
  b.abi_major = DVT_ABI_MAJOR, b.abi_minor = DVT_ABI_MINOR, b.abi_draft = DVT_ABI_DRAFT;
  b.name = "cuda", b.version = BACKEND_VERSION,
  b.build_info = "CUDA " GPU_TOOLKIT_VERSION ", compiler " __VERSION__;
  b.kernels = kernels.data(), b.n_kernels = kernels.size();
  b.device_count = gpu::device_count, b.device_open = gpu::device_open, b.device_close = gpu::device_close;
  b.device_props = gpu::device_props, b.mem_info = gpu::mem_info;
  b.alloc = gpu::alloc, b.dealloc = gpu::dealloc, b.copy = gpu::copy, b.streams = &gpu::streams;
  // No device_reset: what other libraries have in the same context would go with it, and CUDA's manual asks for a
  // new process.
  b.extension = gpu::extension;
  return b;
}
}  // namespace

extern "C" dvt_status dvt_backend_v1(const dvt_host* host, const dvt_backend** out) {
  if (dvt_status s = dvt::accept(host)) return s;
  try {
    static dvt::KernelTable& kernels = *[] {  // there until the process has ended
      auto* table = new dvt::KernelTable(DVT_K_CAPTURE_SAFE);
      gpu::add_rows(*table);
      return table;
    }();
    static const dvt_backend backend = make_table(kernels);
    *out = &backend;
    return DVT_OK;
  } catch (const std::exception& error) {
    return DVT_FAIL(DVT_INTERNAL, "the kernel table: %s", error.what());
  }
}
