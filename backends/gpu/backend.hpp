// The table that a backend hands to the host, from the functions of gpu/functions.hpp.
#pragma once
#include <exception>

#include "gpu/functions.hpp"

#ifndef BACKEND_VERSION
#define BACKEND_VERSION "0"
#endif

namespace gpu {
inline dvt_backend make_table(const char* name, const char* build_info) {
  static const dvt::KernelTable& kernels = *[] {  // kept until the process has ended
    auto* table = new dvt::KernelTable(DVT_K_CAPTURE_SAFE);
    add_rows(*table);
    return table;
  }();
  dvt_backend b{};
  b.struct_size = sizeof b;
  b.abi_major = DVT_ABI_MAJOR, b.abi_minor = DVT_ABI_MINOR, b.abi_draft = DVT_ABI_DRAFT;
  b.name = name, b.version = BACKEND_VERSION, b.build_info = build_info;
  b.kernels = kernels.data(), b.n_kernels = kernels.size();
  b.device_count = device_count, b.device_open = device_open, b.device_close = device_close;
  b.device_props = device_props, b.mem_info = mem_info;
  b.alloc = alloc, b.dealloc = dealloc, b.copy = copy, b.streams = &streams;
  b.extension = extension;
  return b;
}

// The body of dvt_backend_v1, with the table that make() returns.
template <dvt_backend (*make)()>
dvt_status serve(const dvt_host* host, const dvt_backend** out) {
  if (dvt_status s = dvt::accept(host)) return s;
  try {
    static const dvt_backend backend = make();
    *out = &backend;
    return DVT_OK;
  } catch (const std::exception& error) {
    return DVT_FAIL(DVT_INTERNAL, "the kernel table: %s", error.what());
  }
}
}  // namespace gpu
