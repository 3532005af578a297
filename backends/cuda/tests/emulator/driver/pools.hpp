// Memory that is allocated in the order of a stream: each device has one pool of it.
#pragma once
#include "driver/cuda_api.hpp"

namespace emulator {
// May the device use memory of the other's pool, as cuMemPoolSetAccess says?
bool reaches_pool(CUdevice device, CUdevice owner);
}  // namespace emulator
