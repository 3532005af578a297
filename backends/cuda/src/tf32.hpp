// May float32 products and convolutions be computed with TF32's 10 bits of mantissa? Only where the user says so
// with DOVETAIL_CUDA_ALLOW_TF32=1: they are up to eight times faster on tensor cores, and no longer float32.
#pragma once
#include "flags.hpp"

namespace gpu {
inline bool allows_tf32() {
  static const bool allowed = is_set("DOVETAIL_CUDA_ALLOW_TF32");
  return allowed;
}
}  // namespace gpu
