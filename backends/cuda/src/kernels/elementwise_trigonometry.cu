// Trigonometric functions and their inverses.
#include "kernels/common/elementwise.cuh"
#include "kernels/common/trigonometry.cuh"

namespace {
GPU_LONG_FUNCTION(Sin, gpu::math::sin);
GPU_LONG_FUNCTION(Cos, gpu::math::cos);
GPU_LONG_FUNCTION(Tan, gpu::math::tan);
GPU_LONG_FUNCTION(Asin, gpu::math::asin);
GPU_LONG_FUNCTION(Acos, gpu::math::acos);
GPU_LONG_FUNCTION(Atan, gpu::math::atan);
GPU_LONG_FUNCTION(Atan2, gpu::math::atan2);
}  // namespace

#define TRIGONOMETRY(suffix, T)        \
  GPU_UNARY(sin_##suffix, Sin, T, T)   \
  GPU_UNARY(cos_##suffix, Cos, T, T)   \
  GPU_UNARY(tan_##suffix, Tan, T, T)   \
  GPU_UNARY(asin_##suffix, Asin, T, T) \
  GPU_UNARY(acos_##suffix, Acos, T, T) \
  GPU_UNARY(atan_##suffix, Atan, T, T) \
  GPU_BINARY(atan2_##suffix, Atan2, T, T, T)
GPU_FLOATS(TRIGONOMETRY)
