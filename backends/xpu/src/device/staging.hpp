// Pinned host memory that small copies from pageable memory pass through, so that the caller need not wait: buffers
// of one size, used again when their copy is done.
#pragma once
#include <cstddef>
#include <mutex>
#include <sycl/sycl.hpp>
#include <vector>

namespace xpu {
class Staging {
 public:
  static constexpr size_t buffer_bytes = 256 << 10;

  explicit Staging(const sycl::context& context) : context_(context) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void* take();  // throws std::bad_alloc
  void give_back(void* buffer);

 private:
  const sycl::context context_;
  std::mutex mutex_;
  std::vector<void*> free_, all_;
};
}  // namespace xpu
