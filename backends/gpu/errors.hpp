// Statuses of abi.h that GPU backends report in the same words.
#pragma once
#include <exception>
#include <new>

#include "dovetail/backend.hpp"

namespace gpu {
// The status of the standard exception that is being handled.
inline dvt_status report_standard_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return DVT_FAIL(DVT_OOM, "the host is out of memory");
  } catch (const std::exception& error) {
    return DVT_FAIL(DVT_INTERNAL, "%s", error.what());
  }
}

inline dvt_status report_bad_index(uint64_t call, int64_t index, int64_t axis, int64_t size) {
  return DVT_FAIL_LATE(DVT_INDEX, call, "index %lld is out of range: axis %lld has %lld elements", (long long)index,
                       (long long)axis, (long long)size);
}

inline dvt_status check_index(uint32_t index, uint32_t devices) {
  if (index < devices) return DVT_OK;
  return DVT_FAIL(DVT_INVALID, "there are %u devices, got index %u", devices, index);
}

// ---- while a stream records a graph -----------------------------------------------------

inline dvt_status report_uncapturable(const char* what) {
  return DVT_FAIL(DVT_INVALID,
                  "%s cannot be captured: expected kernels, copies without pageable memory, and events of the "
                  "capture",
                  what);
}
inline dvt_status report_no_capture() {
  return DVT_FAIL(DVT_INVALID, "no capture has begun on this stream: expected begin before end");
}
// An event that is part of a graph has no state of its own.
inline dvt_status refuse_captured(bool captured) {
  if (!captured) return DVT_OK;
  return DVT_FAIL(DVT_INVALID, "this event was recorded in a capture: expected a wait by a stream of that capture");
}
inline dvt_status report_no_time() {
  return DVT_FAIL(DVT_INVALID, "no time between events: expected two recorded with timing");
}
}  // namespace gpu
