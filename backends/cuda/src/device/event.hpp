// A place in a stream: the owner of a CUevent, whose context must be current when it comes and goes.
#pragma once
#include <utility>

#include "driver/driver.hpp"

namespace gpu {
class Event {
 public:
  explicit Event(unsigned flags = CU_EVENT_DISABLE_TIMING) { GPU_CALL(cuEventCreate(&handle_, flags)); }
  ~Event() {
    if (handle_) driver().cuEventDestroy(handle_);
  }
  Event(Event&& o) noexcept : handle_(std::exchange(o.handle_, nullptr)) {}
  Event& operator=(Event&& o) noexcept { return std::swap(handle_, o.handle_), *this; }

  CUevent get() const { return handle_; }
  bool passed() const {
    const CUresult result = driver().cuEventQuery(handle_);
    if (result != CUDA_ERROR_NOT_READY) check(result, "cuEventQuery");
    return result == CUDA_SUCCESS;
  }
  void wait() const { GPU_CALL(cuEventSynchronize(handle_)); }

 private:
  CUevent handle_ = nullptr;
};
// The place behind what is queued on the stream now.
inline Event end_of(CUstream stream) {
  Event event;
  GPU_CALL(cuEventRecord(event.get(), stream));
  return event;
}
}  // namespace gpu
