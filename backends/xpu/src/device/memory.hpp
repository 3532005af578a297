// The memory of one device: what is allocated of it, so that it is never promised twice.
#pragma once
#include <cstdint>
#include <mutex>
#include <sycl/sycl.hpp>
#include <unordered_map>

namespace gpu {
class Memory {
 public:
  static constexpr uint64_t alignment = 256;

  Memory(const sycl::context&, const sycl::device&);

  // nullptr where there is not that much. `kind`: DVT_MEM_*.
  void* allocate(uint64_t size, uint32_t kind);
  void release(void*);
  uint64_t total() const { return total_; }
  uint64_t free() const;

 private:
  void* take(uint64_t size, uint32_t kind) const;

  const sycl::context context_;
  const sycl::device device_;
  const uint64_t total_;
  const bool says_what_is_free_;
  mutable std::mutex mutex_;
  uint64_t used_ = 0;                            // by this process
  std::unordered_map<void*, uint64_t> charged_;  // bytes that a block takes of the device
};
}  // namespace gpu
