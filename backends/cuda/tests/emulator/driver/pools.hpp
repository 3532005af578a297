// Memory that is allocated in the order of a stream: each device has one pool of it.
#pragma once
#include "driver/cuda_api.hpp"

namespace emulator {
// Whether the device may use memory of the other's pool, by cuMemPoolSetAccess.
bool reaches_pool(CUdevice device, CUdevice owner);
}  // namespace emulator
