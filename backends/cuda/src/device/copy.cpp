// Copies of compact tensors between devices and the host.
#include <cstring>

#include "device/capture.hpp"
#include "device/errors.hpp"
#include "gpu/functions.hpp"

namespace gpu {
namespace {
bool is_on_host(const DLTensor* t) { return t->device.device_type == 1 /* kDLCPU */; }

// Is it host memory that the driver does not know? It may be written or freed as soon as the call is over.
bool is_pageable(const DLTensor* t) {
  if (!is_on_host(t)) return false;
  CUmemorytype type;
  const CUresult result =
      driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address_of(dvt::data<char>(t)));
  if (result != CUDA_ERROR_INVALID_VALUE) check(result, "cuPointerGetAttribute");
  return result == CUDA_ERROR_INVALID_VALUE;
}

// Copies through a buffer of the backend, so that the caller need not wait for the stream's earlier work.
void copy_staged(dvt_device* d, CUstream stream, CUdeviceptr to, const void* from, size_t bytes) {
  d->deferred.sweep();
  void* const buffer = d->staging.take();
  std::memcpy(buffer, from, bytes);
  const auto give_back = [d, buffer] { d->staging.give_back(buffer); };
  try {
    GPU_CALL(cuMemcpyAsync(to, address_of(buffer), bytes, stream));
    d->deferred.after(end_of(stream), give_back);
  } catch (const Error&) {
    driver().cuStreamSynchronize(stream);  // it may be read until then
    give_back();
    throw;
  }
}

// With unified addressing the driver knows where an address is. Copies between the pools of two devices: without
// access to each other's these need the contexts.
void enqueue(dvt_device* d, const DLTensor* dst, const DLTensor* src, size_t bytes, CUstream stream) {
  const CUdeviceptr to = address_of(dvt::data<char>(dst)), from = address_of(dvt::data<char>(src));
  const auto context_of = [&](const DLTensor* t) {
    const bool is_own = t->device.device_id == int32_t(d->index);
    return is_own ? d->context.handle() : d->peers.context_of(device_at(t->device.device_id), d->own_stream.handle);
  };
  if (is_on_host(dst) || is_on_host(src) || dst->device.device_id == src->device.device_id)
    GPU_CALL(cuMemcpyAsync(to, from, bytes, stream));
  else GPU_CALL(cuMemcpyPeerAsync(to, context_of(dst), from, context_of(src), bytes, stream));
}
}  // namespace

dvt_status copy(dvt_device* d, const DLTensor* dst, const DLTensor* src, dvt_stream* s) {
  return guarded(d, [&]() -> dvt_status {
    const size_t bytes = dvt::bytes(src);
    if (!bytes) return DVT_OK;
    dvt_stream& stream = stream_of(d, s);
    const bool from_pageable = is_pageable(src), to_pageable = is_pageable(dst);
    if (from_pageable || to_pageable)
      if (dvt_status status = refuse_in_capture(stream, "a copy of pageable memory")) return status;
    if (s && from_pageable && bytes <= d->staging.buffer_bytes) {
      copy_staged(d, stream.handle, address_of(dvt::data<char>(dst)), dvt::data<char>(src), bytes);
      return DVT_OK;
    }
    enqueue(d, dst, src, bytes, stream.handle);
    if (!s) return wait_for(stream);
    if (from_pageable || to_pageable) GPU_CALL(cuStreamSynchronize(stream.handle));
    return DVT_OK;
  });
}
}  // namespace gpu
