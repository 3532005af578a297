// Copies of compact tensors between the device and the host, and within the device.
#include <cstring>

#include "device/errors.hpp"
#include "gpu/functions.hpp"

namespace gpu {
namespace {
namespace syclex = sycl::ext::oneapi::experimental;

// Memory of the host that the driver does not know: it may be written, or gone, as soon as the call is over.
bool is_pageable(const DLTensor* t, const sycl::context& context) {
  return t->device.device_type == 1 /* kDLCPU */ &&
         sycl::get_pointer_type(t->data, context) == sycl::usm::alloc::unknown;
}

// Through a buffer that is ours, so that the caller need not wait for what is in front of the copy.
void copy_staged(dvt_device* d, sycl::queue& queue, void* to, const void* from, size_t bytes) {
  d->deferred.sweep();
  void* const buffer = d->staging.take();
  std::memcpy(buffer, from, bytes);
  d->deferred.after({queue.memcpy(to, buffer, bytes)}, [d, buffer] { d->staging.give_back(buffer); });
}
}  // namespace

dvt_status copy(dvt_device* d, const DLTensor* dst, const DLTensor* src, dvt_stream* s) {
  return enqueue(d, s, [&](dvt_stream& stream) -> dvt_status {
    sycl::queue& queue = stream.queue;
    const size_t bytes = dvt::bytes(src);
    void* const to = dvt::data<char>(dst);
    const void* const from = dvt::data<char>(src);
    const bool from_pageable = is_pageable(src, d->context), to_pageable = is_pageable(dst, d->context);
    if (from_pageable || to_pageable)
      if (dvt_status status = refuse_in_capture(stream, "a copy of pageable memory")) return status;
    if (s && from_pageable && bytes <= d->staging.buffer_bytes) {
      copy_staged(d, queue, to, from, bytes);
    } else if (!s || from_pageable || to_pageable) {
      queue.memcpy(to, from, bytes).wait();
    } else {
      syclex::memcpy(queue, to, from, bytes);
    }
    return DVT_OK;
  });
}
}  // namespace gpu
