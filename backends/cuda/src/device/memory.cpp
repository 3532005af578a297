// Raw memory: the host owns the caching pool.
#include "device/errors.hpp"
#include "device/functions.hpp"

namespace gpu {
namespace {
void* from(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
CUdeviceptr address_of(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }

// In the order of a stream, so that the device need not stop; the device's own stream is done when this returns.
CUresult allocate_on_device(dvt_device& d, uint64_t size, dvt_stream* s, CUdeviceptr* out) {
  if (!d.has_pools) return driver().cuMemAlloc(out, size);
  if (CUresult result = driver().cuMemAllocAsync(out, size, stream_of(&d, s).handle)) return result;
  return s ? CUDA_SUCCESS : driver().cuStreamSynchronize(d.own_stream.handle);
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
    check(result, "cuMemAlloc");
    return DVT_OK;
  });
}

void dealloc(dvt_device* d, void* data, uint32_t kind, dvt_stream* s) {
  (void)guarded(d, [&] {  // a lost device has lost its memory
    if (!s) release(*d, data, kind);
    else if (kind == DVT_MEM_DEVICE && d->has_pools) GPU_CALL(cuMemFreeAsync(address_of(data), s->handle));
    else d->deferred.after(s->handle, [d, data, kind] { release(*d, data, kind); });
    d->deferred.sweep();
    return DVT_OK;
  });
}
}  // namespace gpu
