// What SYCL throws becomes a status of abi.h.
#pragma once
#include "device/device.hpp"
#include "gpu/errors.hpp"

namespace gpu {
dvt_status status_of(const sycl::exception&);
// Of a command behind one that failed: SYCL tells the cause apart, and this perhaps long after it.
bool is_consequence(const sycl::exception&);
// The status of the exception that is being handled, told to the host. Marks the device as lost where it is.
dvt_status tell_exception(dvt_device*);

inline dvt_status tell_lost() { return DVT_FAIL(DVT_DEVICE_LOST, "the driver has lost the device"); }

// body(): a status. Not run where the device is lost.
template <class Body>
dvt_status guarded(dvt_device* d, Body&& body) {
  if (d->lost.load(std::memory_order_relaxed)) return tell_lost();
  try {
    return body();
  } catch (...) {
    return tell_exception(d);
  }
}

// body(the stream): a status, of work that is enqueued there. Where work in front of it has failed, which the next
// wait tells, the stream goes on.
template <class Body>
dvt_status enqueue(dvt_device* d, dvt_stream* s, Body&& body) {
  return guarded(d, [&]() -> dvt_status {
    dvt_stream& stream = stream_of(d, s);
    try {
      return body(stream);
    } catch (const sycl::exception& error) {
      stream.queue.throw_asynchronous();
      if (d->lost || !(stream.faults.has_error() || is_consequence(error))) throw;
      stream.renew();
      return body(stream);
    }
  });
}
}  // namespace gpu
