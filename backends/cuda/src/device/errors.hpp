// What the driver answers becomes a status of abi.h.
#pragma once
#include "device/device.hpp"
#include "gpu/errors.hpp"

namespace gpu {
dvt_status status_of(CUresult);
// The status of the exception that is being handled, told to the host. Marks the device as lost where it is.
dvt_status tell_exception(dvt_device*);

inline dvt_status tell_lost() {
  return DVT_FAIL(DVT_DEVICE_LOST,
                  "a kernel or the GPU has failed, and with it all that this process has on it; start it again");
}

// body(): a status, with the device's context current. Not run where the device is lost.
template <class Body>
dvt_status guarded(dvt_device* d, Body&& body) {
  if (d->lost.load(std::memory_order_relaxed)) return tell_lost();
  try {
    const Current current(d->context);
    return body();
  } catch (...) {
    return tell_exception(d);
  }
}
}  // namespace gpu
