// Pinned host memory that small copies from pageable memory pass through, so that the caller need not wait: buffers
// of one size, reused when their copy is done.
#pragma once
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace gpu {
// Pinned: void* allocate(size_t) const, which throws; void release(void*) const.
template <class Pinned>
class Staging {
 public:
  static constexpr size_t buffer_bytes = 256 << 10;

  explicit Staging(Pinned memory = {}) : memory_(std::move(memory)) {}
  ~Staging() {
    for (void* buffer : all_) memory_.release(buffer);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void* take() {
    const std::lock_guard guard(mutex_);
    if (free_.empty()) {
      void* const buffer = memory_.allocate(buffer_bytes);
      all_.push_back(buffer), free_.push_back(buffer);
    }
    void* const buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  void give_back(void* buffer) {
    const std::lock_guard guard(mutex_);
    free_.push_back(buffer);
  }

 private:
  const Pinned memory_;
  std::mutex mutex_;
  std::vector<void*> free_, all_;
};
}  // namespace gpu
