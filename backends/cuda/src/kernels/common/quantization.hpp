// The parameters of quantize and dequantize. Shared with the host.
#pragma once
#include "kernels/common/layout.hpp"

namespace gpu {
struct Quantization {
  Scalar scale;  // where there is no memory for it
  int64_t zero_point;
  uint32_t zero_points;  // 1: one for all channels
  int32_t sign;          // the bit that is one of int8, 0 for uint8
};
}  // namespace gpu
