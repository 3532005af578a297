// Results of the driver as statuses of abi.h.
#pragma once
#include "device/device.hpp"
#include "gpu/errors.hpp"

namespace gpu {
dvt_status status_of(CUresult);
// Reports the exception that is being handled to the host, and marks the device as lost if it is. Returns its
// status.
dvt_status report_exception(dvt_device*);

inline dvt_status report_lost() {
  return DVT_FAIL(DVT_DEVICE_LOST,
                  "a kernel or the GPU has failed, and with it all that this process has on it; start it again");
}

// body(): a status, with the device's context current. Not run where the device is lost.
template <class Body>
dvt_status guarded(dvt_device* d, Body&& body) {
  if (d->lost.load(std::memory_order_relaxed)) return report_lost();
  try {
    const Current current(d->context);
    return body();
  } catch (...) {
    return report_exception(d);
  }
}
}  // namespace gpu
