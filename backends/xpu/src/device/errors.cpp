#include "device/errors.hpp"

#include <cstring>

namespace gpu {
// SYCL's own codes do not distinguish these: the message ends in the name of Unified Runtime's code.
dvt_status status_of(const sycl::exception& error) {
  const auto contains = [text = error.what()](const char* name) { return std::strstr(text, name) != nullptr; };
  if (contains("DEVICE_LOST") || contains("DEVICE_REQUIRES_RESET") || contains("DEVICE_NOT_AVAILABLE"))
    return DVT_DEVICE_LOST;
  if (contains("OUT_OF_DEVICE_MEMORY") || contains("OUT_OF_HOST_MEMORY") || contains("OUT_OF_RESOURCES") ||
      error.code() == sycl::errc::memory_allocation)
    return DVT_OOM;
  return DVT_INTERNAL;
}

bool is_consequence(const sycl::exception& error) { return std::strstr(error.what(), "Enqueue process failed"); }

dvt_status report_exception(dvt_device* d) {
  try {
    throw;
  } catch (const sycl::exception& error) {
    dvt_status status = status_of(error);
    if (status == DVT_INTERNAL && d) {  // behind work that has failed every call does: the cause is elsewhere
      d->streams.gather_errors();
      if (d->lost) return report_lost();
    }
    if (status == DVT_DEVICE_LOST && d) d->lost = true;
    return DVT_FAIL(status, "SYCL: %s", error.what());
  } catch (...) {
    return report_standard_exception();
  }
}
}  // namespace gpu
