// Sums of products of integers, which are exact, times a scale for their row and one for their column.
#include "kernels/common/quantization.hpp"
#include "kernels/common/types.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace {
// A step of 0: one scale for all.
template <class T>
__device__ __forceinline__ void scale(const int32_t* sums, const T* bias, T* out, const gpu::ScaledSums& how) {
  const uint64_t down = uint64_t(gridDim.y) * blockDim.y, across = uint64_t(gridDim.x) * blockDim.x;
  for (uint64_t row = uint64_t(blockIdx.y) * blockDim.y + threadIdx.y; row < how.rows; row += down) {
    const float of_row = how.row_scales[row * how.row_step];
    for (uint64_t j = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; j < how.columns; j += across) {
      const uint64_t i = row * how.columns + j;
      const float y = float(sums[i]) * of_row * how.column_scales[j * how.column_step];
      out[i] = T(bias ? y + float(bias[j]) : y);
    }
  }
}
}  // namespace
#endif

#define SCALE(suffix, T)           \
  KERNEL(256, scale_sums_##suffix) \
  (const int32_t* sums, const T* bias, T* out, gpu::ScaledSums how) { scale(sums, bias, out, how); }
SCALE(f16, gpu::half)
SCALE(bf16, gpu::bf16)
SCALE(f32, float)
