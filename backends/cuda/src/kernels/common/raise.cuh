// Faults raised by kernels.
#pragma once
#include "kernels/common/fault.hpp"
#include "kernels/common/kernel.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
// An index is out of range: an IndexError at the next wait, before which the host does not look. The first
// of several is reported. Atomic within this GPU: each stream, or graph, has its own Fault.
__device__ inline void raise_index(Fault* fault, uint64_t call, int64_t index, int64_t axis, int64_t size) {
  if (atomicCAS(&fault->raised, 0u, 1u) != 0) return;
  fault->call = call, fault->index = index, fault->axis = uint32_t(axis), fault->size = size;
  __threadfence_system();
}

// A negative index counts from the end. False, and the fault raised, where there is no such slice.
__device__ __forceinline__ bool find_index(int64_t& index, Fault* fault, uint64_t call, int64_t axis,
                                           int64_t size) {
  const int64_t given = index;
  if (index < 0) index += size;
  if (index >= 0 && index < size) return true;
  raise_index(fault, call, given, axis, size);
  return false;
}
}  // namespace gpu
#endif
