// NCCL's functions.
#pragma once
#include <nccl.h>

#include <string>

#include "driver/libraries.hpp"

namespace gpu::nccl {
// clang-format off
#define GPU_NCCL_FUNCTIONS(X) \
  X(ncclAllGather) X(ncclAllReduce) X(ncclBroadcast) X(ncclCommAbort) X(ncclCommDestroy) \
  X(ncclCommGetAsyncError) X(ncclCommInitRank) X(ncclGetErrorString) X(ncclGetLastError) X(ncclGetUniqueId) \
  X(ncclGroupEnd) X(ncclGroupStart) X(ncclRecv) X(ncclReduceScatter) X(ncclSend)
// clang-format on

struct Functions {
  GPU_NCCL_FUNCTIONS(GPU_LIBRARY_MEMBER)
};

// Why it cannot be used, and what helps; empty where it can. Opens it when first asked.
const std::string& missing();
const Functions& functions();  // where nothing is missing
}  // namespace gpu::nccl
