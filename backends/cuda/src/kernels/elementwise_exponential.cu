// Exponentials, logarithms and roots; the error function.
#include "kernels/common/elementwise.cuh"
#include "kernels/common/hyperbolic.cuh"
#include "kernels/common/special.cuh"

namespace {
GPU_LONG_FUNCTION(Exp, gpu::math::exp);
GPU_LONG_FUNCTION(Expm1, gpu::math::expm1);
GPU_LONG_FUNCTION(Log, gpu::math::log);
GPU_LONG_FUNCTION(Log1p, gpu::math::log1p);
GPU_LONG_FUNCTION(Tanh, gpu::math::tanh);
GPU_LONG_FUNCTION(Erf, gpu::math::erf);
GPU_LONG_FUNCTION(Erfc, gpu::math::erfc);
GPU_LONG_FUNCTION(Sqrt, gpu::math::sqrt);
GPU_LONG_FUNCTION(Rsqrt, gpu::math::rsqrt);
}  // namespace

#define EXPONENTIAL(suffix, T)           \
  GPU_UNARY(exp_##suffix, Exp, T, T)     \
  GPU_UNARY(expm1_##suffix, Expm1, T, T) \
  GPU_UNARY(log_##suffix, Log, T, T)     \
  GPU_UNARY(log1p_##suffix, Log1p, T, T) \
  GPU_UNARY(tanh_##suffix, Tanh, T, T)   \
  GPU_UNARY(erf_##suffix, Erf, T, T)     \
  GPU_UNARY(erfc_##suffix, Erfc, T, T)   \
  GPU_UNARY(sqrt_##suffix, Sqrt, T, T)   \
  GPU_UNARY(rsqrt_##suffix, Rsqrt, T, T)
GPU_FLOATS(EXPONENTIAL)
