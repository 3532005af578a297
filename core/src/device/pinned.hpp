// Host memory that a device copies from and to while the host goes on (DVT_MEM_PINNED).
#pragma once
#include <cstdint>

#include "device/backend.hpp"

namespace dovetail {
struct PinnedMemory {
  void* data;
  bool pinned;  // false: the device has no such memory, and this is plain memory of the host
};
PinnedMemory allocate_pinned(Device&, uint64_t bytes);
// Waits for the device's work. Throws Error(value) where the address is not one of allocate_pinned().
void free_pinned(void* data);
// Whether all of it lies in one pinned block of this device.
bool is_pinned(const Device&, const void* data, uint64_t bytes);
// As copy_bytes(), but it only enqueues: the host's side is pinned memory, which stays in use until the stream has
// passed.
void copy_pinned(Device&, Stream&, const DLTensor& dst, const DLTensor& src);
}  // namespace dovetail
