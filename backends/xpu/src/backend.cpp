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
  b.name = "xpu", b.version = BACKEND_VERSION, b.build_info = "compiler " __VERSION__;
  b.kernels = kernels.data(), b.n_kernels = kernels.size();
  b.device_count = xpu::device_count, b.device_open = xpu::device_open, b.device_close = xpu::device_close;
  b.device_props = xpu::device_props, b.mem_info = xpu::mem_info;
  b.alloc = xpu::alloc, b.dealloc = xpu::dealloc, b.copy = xpu::copy, b.streams = &xpu::streams;
  b.device_reset = xpu::device_reset, b.extension = xpu::extension;
  return b;
}
}  // namespace

extern "C" dvt_status dvt_backend_v1(const dvt_host* host, const dvt_backend** out) {
  if (dvt_status s = dvt::accept(host)) return s;
  try {
    static dvt::KernelTable& kernels = *[] {  // there until the process has ended
      auto* table = new dvt::KernelTable(DVT_K_CAPTURE_SAFE);
      xpu::add_rows(*table);
      return table;
    }();
    static const dvt_backend backend = make_table(kernels);
    *out = &backend;
    return DVT_OK;
  } catch (const std::exception& error) {
    return DVT_FAIL(DVT_INTERNAL, "the kernel table: %s", error.what());
  }
}
