// Sums of products as rows of columns, and their scales.
#pragma once
#include <cstdint>

namespace gpu {
struct ScaledSums {
  uint64_t rows, columns;
  const float *row_scales, *column_scales;
  uint64_t row_step, column_step;  // 0: one for all
};
}  // namespace gpu
