// NCCL's functions.
#pragma once
#include <nccl.h>

#include <string>

#include "driver/driver.hpp"

namespace gpu::nccl {
// clang-format off
#define GPU_NCCL_FUNCTIONS(X) \
  X(ncclAllGather) X(ncclAllReduce) X(ncclBroadcast) X(ncclCommAbort) X(ncclCommDestroy) \
  X(ncclCommGetAsyncError) X(ncclCommInitRank) X(ncclGetErrorString) X(ncclGetLastError) X(ncclGetUniqueId) \
  X(ncclGroupEnd) X(ncclGroupStart) X(ncclRecv) X(ncclReduceScatter) X(ncclSend)
// clang-format on

struct Functions {
  GPU_LIBRARY_TABLE(GPU_NCCL_FUNCTIONS)
  static Library open() { return Library(nccl_library); }
  std::string check(const Library& library) const {
    return is_emulated() && !library.has(emulation_marker) ? "NCCL does not work with an emulated driver" : "";
  }
};

// Why it cannot be used, and the cure; empty if it can. The first call opens it.
inline const std::string& missing() { return OpenedLibrary<Functions>::get().missing; }
inline const Functions& functions() { return OpenedLibrary<Functions>::get().functions; }  // if nothing is missing
}  // namespace gpu::nccl
