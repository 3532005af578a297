// Exponentials, logarithms, roots and the error function.
#include "kernels/common/elementwise.hpp"

#define EXPONENTIAL(suffix, T)               \
  GPU_UNARY(exp_##suffix, fn::Exp, T, T)     \
  GPU_UNARY(expm1_##suffix, fn::Expm1, T, T) \
  GPU_UNARY(log_##suffix, fn::Log, T, T)     \
  GPU_UNARY(log1p_##suffix, fn::Log1p, T, T) \
  GPU_UNARY(tanh_##suffix, fn::Tanh, T, T)   \
  GPU_UNARY(erf_##suffix, fn::Erf, T, T)     \
  GPU_UNARY(erfc_##suffix, fn::Erfc, T, T)   \
  GPU_UNARY(sqrt_##suffix, fn::Sqrt, T, T)   \
  GPU_UNARY(rsqrt_##suffix, fn::Rsqrt, T, T)
DVT_FLOATS(EXPONENTIAL)
