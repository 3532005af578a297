// The functions of abi.h for a device whose kernels run on the host, synchronously and in host memory. The table
// has no `streams`, so every call has stream NULL.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "compile.hpp"
#include "kernels.hpp"
#include "name.hpp"

#ifndef BACKEND_VERSION
#define BACKEND_VERSION "0"
#endif

struct dvt_device {
  uint32_t index;
};

namespace {
constexpr uint64_t alignment = 64;
thread_local std::string fault;  // reported by the kernel that runs on this thread; empty: none

// ---- devices ----------------------------------------------------------------------------------------------------

dvt_status device_count(uint32_t* n) { return *n = 1, DVT_OK; }

dvt_status device_open(uint32_t index, dvt_device** out) {
  if (index) return DVT_FAIL(DVT_INVALID, "there is one device, got index %u", unsigned(index));
  return *out = new dvt_device{index}, DVT_OK;
}
void device_close(dvt_device* d) { delete d; }

uint64_t host_memory() { return uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE)); }

dvt_status device_props(dvt_device*, dvt_props* p) {
  std::snprintf(p->name, sizeof p->name, "@{vendor}@");
  std::snprintf(p->arch, sizeof p->arch, "host");
  DVT_PUT(p, dvt_props, kind, DVT_KIND_OTHER);
  DVT_PUT(p, dvt_props, caps, DVT_CAP_HOST_MAPPED | DVT_CAP_FORK_SAFE);
  DVT_PUT(p, dvt_props, dl_device_type, 12 /* kDLExtDev */);
  DVT_PUT(p, dvt_props, mem_total, host_memory());  // the pool caches no more than a part of it
  DVT_PUT(p, dvt_props, alloc_align, alignment);
  return DVT_OK;
}

// ---- memory: raw; the pool is the host's ------------------------------------------------------------------------

dvt_status alloc(dvt_device*, uint64_t size, uint32_t kind, dvt_stream*, void** out) {
  if (kind != DVT_MEM_DEVICE) return DVT_UNSUPPORTED;
  *out = std::aligned_alloc(alignment, size);
  return *out ? DVT_OK : DVT_OOM;
}
void dealloc(dvt_device*, void* data, uint32_t, dvt_stream*) { std::free(data); }

dvt_status copy(dvt_device*, const DLTensor* dst, const DLTensor* src, dvt_stream*) {
  if (const uint64_t bytes = dvt::bytes(src)) std::memcpy(dvt::data<char>(dst), dvt::data<char>(src), bytes);
  return DVT_OK;
}
}  // namespace

// ---- kernels ----------------------------------------------------------------------------------------------------

dvt_status launch(dvt_device*, const dvt_call* call, Work work) {
  fault.clear();
  work(call);
  return fault.empty() ? DVT_OK : DVT_FAIL(DVT_INDEX, "%s", fault.c_str());
}

void bad_index(int64_t index, int64_t axis, int64_t size) {
  fault = "index " + std::to_string(index) + " is out of range: axis " + std::to_string(axis) + " has " +
          std::to_string(size) + " elements";
}

// ---- the table --------------------------------------------------------------------------------------------------

extern "C" dvt_status dvt_backend_v1(const dvt_host* host, const dvt_backend** out) {
  if (dvt_status s = dvt::accept(host)) return s;
  static const dvt_backend backend = [] {
    static dvt::KernelTable& table = *new dvt::KernelTable;  // never destroyed
    add_elementwise(table), add_copies(table), add_indexing(table), add_reductions(table), add_matmul(table);
    dvt_backend b{};
    b.struct_size = sizeof b;
    b.abi_major = DVT_ABI_MAJOR, b.abi_minor = DVT_ABI_MINOR, b.abi_draft = DVT_ABI_DRAFT;
    b.name = backend_name, b.version = BACKEND_VERSION, b.build_info = "compiler " __VERSION__;
    b.kernels = table.data(), b.n_kernels = table.size();
    b.device_count = device_count, b.device_open = device_open, b.device_close = device_close;
    b.device_props = device_props, b.alloc = alloc, b.dealloc = dealloc, b.copy = copy;
    b.extension = compiler_extension;  // compile.cpp
    return b;
  }();
  *out = &backend;
  return DVT_OK;
}
