// Addresses in the shared window, as instructions on it take them: 32 bits, equal for equal offsets of a block.
#pragma once
#include "kernels/common/kernel.cuh"

namespace gpu {
using SharedAddress = uint32_t;

#ifndef GPU_EMULATED
__device__ __forceinline__ SharedAddress shared_address(const void* p) {
  return uint32_t(__cvta_generic_to_shared(p));
}
#else
// The emulator's: of dynamic shared memory alone.
inline std::byte* shared_pointer(SharedAddress address) { return emulator::dynamic_shared<std::byte>() + address; }
inline SharedAddress shared_address(const void* p) {
  return SharedAddress(static_cast<const std::byte*>(p) - emulator::dynamic_shared<std::byte>());
}
#endif
}  // namespace gpu
