// The parameters of quantize, dequantize and scaled_linear. Shared with the host.
#pragma once
#include "kernels/common/layout.hpp"

namespace gpu {
struct Quantization {
  Scalar scale;  // where there is no memory for it
  int64_t zero_point;
  uint32_t zero_points;  // 1: one for all channels
  int32_t sign;          // the bit that is one of int8, 0 for uint8
};

// Sums of products as rows of columns, and their scales.
struct ScaledSums {
  uint64_t rows, columns;
  const float *row_scales, *column_scales;
  uint64_t row_step, column_step;  // 0: one for all
};
}  // namespace gpu
