// Faults raised by kernels.
#pragma once
#include "kernels/common/fault.hpp"
#include "kernels/common/kernel.hpp"

namespace gpu {
// An index is out of range: an IndexError at the next wait. The first of several is reported.
inline void raise_index(Fault* fault, uint64_t call, int64_t index, int64_t axis, int64_t size) {
  const sycl::atomic_ref<uint32_t, sycl::memory_order::relaxed, sycl::memory_scope::device,
                         sycl::access::address_space::global_space>
      raised(fault->raised);
  uint32_t unclaimed = 0;
  if (!raised.compare_exchange_strong(unclaimed, 1)) return;
  fault->call = call, fault->index = index, fault->axis = axis, fault->size = size;
}

// A negative index counts from the end. False, and the fault raised, where there is no such slice.
inline bool find_index(int64_t& index, Fault* fault, uint64_t call, int64_t axis, int64_t size) {
  const int64_t given = index;
  if (index < 0) index += size;
  if (index >= 0 && index < size) return true;
  raise_index(fault, call, given, axis, size);
  return false;
}
}  // namespace gpu
