#include "device/faults.hpp"

#include <algorithm>
#include <atomic>

#include "driver/driver.hpp"
#include "gpu/errors.hpp"

namespace gpu {
Faults::~Faults() {
  if (slot_) driver().cuMemFreeHost(slot_);
}

// With unified addressing, which every 64-bit Linux has, the host's address is the device's.
Fault* Faults::slot() {
  const std::lock_guard guard(mutex_);
  if (!slot_) {
    void* memory = nullptr;
    GPU_CALL(cuMemHostAlloc(&memory, sizeof(Fault), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    slot_ = new (memory) Fault{};
  }
  return slot_;
}

dvt_status Faults::report() {
  const std::lock_guard guard(mutex_);
  if (!slot_ || !std::atomic_ref(slot_->raised).load(std::memory_order_acquire)) return DVT_OK;
  const Fault fault = *slot_;
  std::atomic_ref(slot_->raised).store(0, std::memory_order_release);
  return report_bad_index(fault.call, fault.index, fault.axis, fault.size);
}

void FaultList::watch(std::shared_ptr<Faults> faults) {
  const std::lock_guard guard(mutex_);
  std::erase_if(watched_, [&](const auto& known) { return known.expired() || known.lock() == faults; });
  watched_.push_back(std::move(faults));
}

dvt_status FaultList::report() {
  if (dvt_status s = own_.report()) return s;
  const std::lock_guard guard(mutex_);
  for (const auto& known : watched_)
    if (const auto faults = known.lock())
      if (dvt_status s = faults->report()) return s;
  return DVT_OK;
}
}  // namespace gpu
