// Pinned host memory that small copies from pageable memory pass through, so that the caller need not wait: buffers
// of one size, used again when their copy is done.
#pragma once
#include <cstddef>
#include <mutex>
#include <vector>

namespace gpu {
class Staging {
 public:
  static constexpr size_t buffer_bytes = 256 << 10;

  Staging() = default;
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void* take();
  void give_back(void* buffer);

 private:
  std::mutex mutex_;
  std::vector<void*> free_, all_;
};
}  // namespace gpu
