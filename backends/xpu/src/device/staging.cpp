#include "device/staging.hpp"

#include <new>

namespace xpu {
Staging::~Staging() {
  for (void* buffer : all_) sycl::free(buffer, context_);
}

void* Staging::take() {
  const std::lock_guard guard(mutex_);
  if (free_.empty()) {
    void* buffer = sycl::malloc_host(buffer_bytes, context_);
    if (!buffer) throw std::bad_alloc();
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
}  // namespace xpu
