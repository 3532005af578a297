// Hyperbolic functions and their inverses.
#include "kernels/common/elementwise.cuh"
#include "kernels/common/hyperbolic.cuh"

namespace {
GPU_LONG_FUNCTION(Sinh, gpu::math::sinh);
GPU_LONG_FUNCTION(Cosh, gpu::math::cosh);
GPU_LONG_FUNCTION(Asinh, gpu::math::asinh);
GPU_LONG_FUNCTION(Acosh, gpu::math::acosh);
GPU_LONG_FUNCTION(Atanh, gpu::math::atanh);
}  // namespace

#define HYPERBOLIC(suffix, T)            \
  GPU_UNARY(sinh_##suffix, Sinh, T, T)   \
  GPU_UNARY(cosh_##suffix, Cosh, T, T)   \
  GPU_UNARY(asinh_##suffix, Asinh, T, T) \
  GPU_UNARY(acosh_##suffix, Acosh, T, T) \
  GPU_UNARY(atanh_##suffix, Atanh, T, T)
GPU_FLOATS(HYPERBOLIC)
