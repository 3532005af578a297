// The group dovetail.collectives of abi.h, by NCCL.
#pragma once
#include "dovetail/abi.h"

namespace gpu::nccl {
extern const dvt_collectives collectives;
}  // namespace gpu::nccl
