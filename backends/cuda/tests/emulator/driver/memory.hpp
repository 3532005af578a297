// Memory of emulated devices, in the host's.
//
// Devices have their own range of addresses, larger than their memory, in which places are not reused soon:
// an address of the range that is in no allocation is invalid, and a kernel that uses it faults. Allocations
// begin on pages of their own with NaN in every format; the bytes after them must not change.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "driver/cuda_api.hpp"

namespace emulator {
class Memory {
 public:
  enum class Kind { device, pooled, managed, pinned };
  struct Allocation {
    Kind kind;
    int device;
    size_t size;
    bool released = false;  // in the order of a stream: queued work still uses it
  };

  static Memory& instance();

  uintptr_t allocate(Kind, int device, size_t size);  // throws Refusal if there is not enough
  // No call may use it any more. Throws Refusal if no allocation of such a kind begins there.
  void release(uintptr_t, bool pinned);
  void free(uintptr_t);  // what has been released
  void free_all(int device);

  std::optional<Allocation> find(uintptr_t address);  // the allocation that contains it
  size_t unused(int device);
  // Throws Refusal unless all bytes are in one allocation, or in unregistered host memory.
  void check(uintptr_t address, size_t bytes);
  bool is_in_range(uintptr_t address) const { return address - base_ < range_; }

 private:
  Memory();
  using Iterator = std::map<uintptr_t, Allocation>::iterator;
  Iterator containing(uintptr_t);
  uintptr_t place(size_t mapped);
  void free(Iterator);

  std::mutex mutex_;
  std::map<uintptr_t, Allocation> all_;  // by address
  std::vector<size_t> used_;             // of each device
  uintptr_t base_ = 0, next_ = 0;
  size_t range_ = 0;
};
}  // namespace emulator
