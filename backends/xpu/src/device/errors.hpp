// Exceptions of SYCL as statuses of abi.h.
#pragma once
#include "device/device.hpp"
#include "gpu/errors.hpp"

namespace gpu {
dvt_status status_of(const sycl::exception&);
// Is it the error of a command behind one that failed? SYCL reports the cause separately, perhaps long before.
bool is_consequence(const sycl::exception&);
// Reports the exception that is being handled to the host, and marks the device as lost if it is. Returns its
// status.
dvt_status report_exception(dvt_device*);

inline dvt_status report_lost() { return DVT_FAIL(DVT_DEVICE_LOST, "the driver has lost the device"); }

// body(): a status. Not run where the device is lost.
template <class Body>
dvt_status guarded(dvt_device* d, Body&& body) {
  if (d->lost.load(std::memory_order_relaxed)) return report_lost();
  try {
    return body();
  } catch (...) {
    return report_exception(d);
  }
}

// Returns body(stream), which enqueues work. If work in front of it has failed, the next wait reports that, and the
// stream goes on.
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
