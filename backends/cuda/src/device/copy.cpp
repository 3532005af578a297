// Copies of compact tensors between devices and the host: with unified addressing an address tells where it is.
#include <cstring>

#include "device/capture.hpp"
#include "device/errors.hpp"
#include "device/functions.hpp"

namespace gpu {
namespace {
CUdeviceptr address_of(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }

// Memory of the host that the driver does not know: it may be written, or gone, as soon as the call is over.
bool is_pageable(const DLTensor* t) {
  if (t->device.device_type != 1 /* kDLCPU */) return false;
  CUmemorytype type;
  const CUresult result =
      driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address_of(dvt::data<char>(t)));
  if (result != CUDA_ERROR_INVALID_VALUE) check(result, "cuPointerGetAttribute");
  return result == CUDA_ERROR_INVALID_VALUE;
}

// Through a buffer that is ours, so that the caller need not wait for what is in front of the copy.
void copy_staged(dvt_device* d, CUstream stream, CUdeviceptr to, const void* from, size_t bytes) {
  d->deferred.sweep();
  void* const buffer = d->staging.take();
  std::memcpy(buffer, from, bytes);
  GPU_CALL(cuMemcpyAsync(to, address_of(buffer), bytes, stream));
  d->deferred.after(stream, [d, buffer] { d->staging.give_back(buffer); });
}
}  // namespace

dvt_status copy(dvt_device* d, const DLTensor* dst, const DLTensor* src, dvt_stream* s) {
  return guarded(d, [&]() -> dvt_status {
    const size_t bytes = dvt::bytes(src);
    if (!bytes) return DVT_OK;
    dvt_stream& stream = stream_of(d, s);
    char *const to = dvt::data<char>(dst), *const from = dvt::data<char>(src);
    const bool from_pageable = is_pageable(src), to_pageable = is_pageable(dst);
    if (from_pageable || to_pageable)
      if (dvt_status status = refuse_in_capture(stream, "a copy of pageable memory")) return status;
    if (s && from_pageable && bytes <= Staging::buffer_bytes) {
      copy_staged(d, stream.handle, address_of(to), from, bytes);
      return DVT_OK;
    }
    GPU_CALL(cuMemcpyAsync(address_of(to), address_of(from), bytes, stream.handle));
    if (!s) return wait_for(stream);
    if (from_pageable || to_pageable) GPU_CALL(cuStreamSynchronize(stream.handle));
    return DVT_OK;
  });
}
}  // namespace gpu
