// Raw memory: the host owns the caching pool.
#include "device/capture.hpp"
#include "device/errors.hpp"
#include "gpu/functions.hpp"

namespace gpu {
namespace {
void* from(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// In the order of a stream, so that the device need not stop; the device's own stream is done when this returns.
// It serves streams that record, too: there memory would be a node of the graph, and there in its runs alone.
CUresult allocate_on_device(dvt_device& d, uint64_t size, dvt_stream* s, CUdeviceptr* out) {
  if (!d.has_pools) return driver().cuMemAlloc(out, size);
  const bool in_order = s && !capture_of(s->handle);
  if (CUresult result = driver().cuMemAllocAsync(out, size, in_order ? s->handle : d.own_stream.handle))
    return result;
  return in_order ? CUDA_SUCCESS : driver().cuStreamSynchronize(d.own_stream.handle);
}

CUresult allocate(dvt_device& d, uint64_t size, uint32_t kind, dvt_stream* s, void** out) {
  CUdeviceptr address = 0;
  CUresult result;
  switch (kind) {
    case DVT_MEM_PINNED: return driver().cuMemHostAlloc(out, size, CU_MEMHOSTALLOC_PORTABLE);
    case DVT_MEM_SHARED: result = driver().cuMemAllocManaged(&address, size, CU_MEM_ATTACH_GLOBAL); break;
    default: result = allocate_on_device(d, size, s, &address);
  }
  *out = from(address);
  return result;
}

const char* allocator_of(const dvt_device& d, uint32_t kind) {
  if (kind == DVT_MEM_PINNED) return "cuMemHostAlloc";
  if (kind == DVT_MEM_SHARED) return "cuMemAllocManaged";
  return d.has_pools ? "cuMemAllocAsync" : "cuMemAlloc";
}

void release(dvt_device& d, void* data, uint32_t kind) {
  if (kind == DVT_MEM_PINNED) GPU_CALL(cuMemFreeHost(data));
  else if (kind == DVT_MEM_DEVICE && d.has_pools) GPU_CALL(cuMemFreeAsync(address_of(data), d.own_stream.handle));
  else GPU_CALL(cuMemFree(address_of(data)));
}
}  // namespace

dvt_status mem_info(dvt_device* d, uint64_t* free_bytes, uint64_t* total) {
  return guarded(d, [&] {
    size_t unused = 0, all = 0;
    GPU_CALL(cuMemGetInfo(&unused, &all));
    *free_bytes = unused, *total = all;
    return DVT_OK;
  });
}

dvt_status alloc(dvt_device* d, uint64_t size, uint32_t kind, dvt_stream* s, void** out) {
  return guarded(d, [&]() -> dvt_status {
    if (kind == DVT_MEM_SHARED && !attribute(d->context.device(), CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY))
      return DVT_UNSUPPORTED;
    d->deferred.sweep();
    CUresult result = allocate(*d, size, kind, s, out);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {  // what streams still hold is worth waiting for
      d->deferred.drain();
      GPU_CALL(cuStreamSynchronize(d->own_stream.handle));
      result = allocate(*d, size, kind, s, out);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return DVT_OOM;
    check(result, allocator_of(*d, kind));
    return DVT_OK;
  });
}

void dealloc(dvt_device* d, void* data, uint32_t kind, dvt_stream* s) {
  (void)guarded(d, [&] {  // a lost device has lost its memory
    const auto capture = s ? capture_of(s->handle) : std::nullopt;
    if (capture && d->recordings.at_end(*capture, [=] { dealloc(d, data, kind, s); })) return DVT_OK;
    if (!s || capture) release(*d, data, kind);
    else if (kind == DVT_MEM_DEVICE && d->has_pools) GPU_CALL(cuMemFreeAsync(address_of(data), s->handle));
    else d->deferred.after(end_of(s->handle), [d, data, kind] { release(*d, data, kind); });
    d->deferred.sweep();
    return DVT_OK;
  });
}
}  // namespace gpu
