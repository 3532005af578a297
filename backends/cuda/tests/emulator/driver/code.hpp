// The code of libraries: anything is taken for the kernels that were compiled into this library, but a shared
// library of the host's for the one kernel that it has (EMULATOR_CODE of device/registry.hpp).
#pragma once
#include <memory>

#include "device/registry.hpp"

namespace emulator {
// The kernel of a shared library whose bytes these are, opened until the last pointer has gone; nullptr if they are
// anything else.
std::shared_ptr<const Kernel> open_code(const void* bytes);
}  // namespace emulator
