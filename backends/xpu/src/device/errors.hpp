// What SYCL throws becomes a status of abi.h.
#pragma once
#include "device/device.hpp"

namespace xpu {
dvt_status status_of(const sycl::exception&);
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
}  // namespace xpu
