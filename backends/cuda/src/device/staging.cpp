#include "device/staging.hpp"

#include "driver/driver.hpp"

namespace gpu {
Staging::~Staging() {
  for (void* buffer : all_) driver().cuMemFreeHost(buffer);
}

void* Staging::take() {
  const std::lock_guard guard(mutex_);
  if (free_.empty()) {
    void* buffer = nullptr;
    GPU_CALL(cuMemHostAlloc(&buffer, buffer_bytes, CU_MEMHOSTALLOC_PORTABLE));
    all_.push_back(buffer), free_.push_back(buffer);
  }
  void* const buffer = free_.back();
  free_.pop_back();
  return buffer;
}

void Staging::give_back(void* buffer) {
  const std::lock_guard guard(mutex_);
  free_.push_back(buffer);
}
}  // namespace gpu
