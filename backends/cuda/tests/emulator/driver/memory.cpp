#include "driver/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "driver/call.hpp"
#include "driver/contexts.hpp"
#include "driver/devices.hpp"

namespace emulator {
namespace {
constexpr size_t page = 4096;
constexpr size_t times_memory = 32;        // the range of addresses
constexpr size_t most_poisoned = 1 << 20;  // of an allocation: the rest is not worth the time
constexpr int poison = 0xff, untouched = 0xa5;

constexpr size_t pages(size_t bytes) { return (bytes + page - 1) / page * page; }
void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

bool counts(Memory::Kind kind) { return kind == Memory::Kind::device || kind == Memory::Kind::pooled; }

// At least one page after an allocation is never mapped.
constexpr size_t mapped(size_t bytes) { return pages(bytes) + page; }
}  // namespace

Memory& Memory::instance() {
  static Memory& one = *new Memory;
  return one;
}

Memory::Memory() : used_(size_t(count_devices())), range_(pages(memory_of_device()) * times_memory) {
  void* const range = mmap(nullptr, range_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) refuse(CUDA_ERROR_OUT_OF_MEMORY, "no range of addresses for device memory");
  base_ = next_ = reinterpret_cast<uintptr_t>(range);
}

// The next gap that is wide enough, wrapping around at the end.
uintptr_t Memory::place(size_t wanted) {
  for (bool again : {false, true}) {
    uintptr_t at = again ? base_ : next_;
    for (auto it = all_.lower_bound(at);; ++it) {
      while (it != all_.end() && !is_in_range(it->first)) ++it;
      const uintptr_t end = it == all_.end() ? base_ + range_ : it->first;
      if (at + wanted <= end) {
        next_ = at + wanted;
        return at;
      }
      if (it == all_.end()) break;
      at = it->first + mapped(it->second.size);
    }
  }
  refuse(CUDA_ERROR_OUT_OF_MEMORY, "the range of device addresses is fragmented");
}

uintptr_t Memory::allocate(Kind kind, int device, size_t size) {
  if (!size) refuse(CUDA_ERROR_INVALID_VALUE, "an allocation of 0 bytes");
  const std::lock_guard guard(mutex_);
  size_t& used = used_[size_t(device)];
  const size_t total = memory_of_device();
  if (counts(kind) && (size > total || pages(size) > total - used))
    refuse(CUDA_ERROR_OUT_OF_MEMORY, "wanted " + std::to_string(size) + " bytes, " + std::to_string(used) + " of " +
                                         std::to_string(total) + " are used");
  if (size > range_) refuse(CUDA_ERROR_OUT_OF_MEMORY, "wanted " + std::to_string(size) + " bytes");
  const uintptr_t at = place(mapped(size));
  if (mprotect(pointer(at), pages(size), PROT_READ | PROT_WRITE))
    refuse(CUDA_ERROR_OUT_OF_MEMORY, "the host gives no more memory");
  std::memset(pointer(at), poison, std::min(size, most_poisoned));
  std::memset(pointer(at + size), untouched, pages(size) - size);
  all_.emplace(at, Allocation{kind, device, size});
  if (counts(kind)) used += pages(size);
  return at;
}

void Memory::release(uintptr_t address, bool pinned) {
  const std::lock_guard guard(mutex_);
  const auto it = all_.find(address);
  if (it == all_.end() || it->second.released || (it->second.kind == Kind::pinned) != pinned)
    refuse(CUDA_ERROR_INVALID_VALUE, "no allocation of that kind begins at this address");
  it->second.released = true;
}

void Memory::free(uintptr_t address) {
  const std::lock_guard guard(mutex_);
  if (const auto it = all_.find(address); it != all_.end()) free(it);
}

void Memory::free(Iterator it) {
  const auto [address, allocation] = *it;
  const auto* const behind = static_cast<const unsigned char*>(pointer(address + allocation.size));
  const size_t rest = pages(allocation.size) - allocation.size;
  if (!std::all_of(behind, behind + rest, [](unsigned char b) { return b == untouched; }))
    fail_device(
        allocation.device, CUDA_ERROR_ILLEGAL_ADDRESS,
        "a write behind an allocation of " + std::to_string(allocation.size) + " bytes, seen when it was freed");
  // Replaces the old pages, which no thread may touch, by fresh ones.
  mmap(pointer(address), pages(allocation.size), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
       -1, 0);
  if (counts(allocation.kind)) used_[size_t(allocation.device)] -= pages(allocation.size);
  all_.erase(it);
}

void Memory::free_all(int device) {
  const std::lock_guard guard(mutex_);
  for (auto it = all_.begin(); it != all_.end();) {
    const auto next = std::next(it);
    if (it->second.device == device) free(it);
    it = next;
  }
}

Memory::Iterator Memory::containing(uintptr_t address) {
  auto it = all_.upper_bound(address);
  if (it == all_.begin()) return all_.end();
  --it;
  return address - it->first < it->second.size && !it->second.released ? it : all_.end();
}

std::optional<Memory::Allocation> Memory::find(uintptr_t address) {
  const std::lock_guard guard(mutex_);
  const auto it = containing(address);
  return it == all_.end() ? std::nullopt : std::optional(it->second);
}

size_t Memory::unused(int device) {
  const std::lock_guard guard(mutex_);
  return memory_of_device() - used_[size_t(device)];
}

void Memory::check(uintptr_t address, size_t bytes) {
  if (!bytes) return;
  const std::lock_guard guard(mutex_);
  const auto it = containing(address);
  if (it == all_.end() && address && !is_in_range(address)) return;
  if (it == all_.end()) refuse(CUDA_ERROR_INVALID_VALUE, "the address is in no allocation");
  if (bytes > it->second.size - (address - it->first))
    refuse(CUDA_ERROR_INVALID_VALUE, std::to_string(bytes) + " bytes from byte " +
                                         std::to_string(address - it->first) + " of an allocation of " +
                                         std::to_string(it->second.size));
}
}  // namespace emulator
