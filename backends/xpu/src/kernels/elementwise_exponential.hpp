// Exponentials, logarithms and roots. What SYCL promises is exact enough for expm1, log1p and tanh.
#include "kernels/common/elementwise.hpp"

#define EXPONENTIAL(suffix, T)               \
  XPU_UNARY(exp_##suffix, fn::Exp, T, T)     \
  XPU_UNARY(expm1_##suffix, fn::Expm1, T, T) \
  XPU_UNARY(log_##suffix, fn::Log, T, T)     \
  XPU_UNARY(log1p_##suffix, fn::Log1p, T, T) \
  XPU_UNARY(tanh_##suffix, fn::Tanh, T, T)   \
  XPU_UNARY(erf_##suffix, fn::Erf, T, T)     \
  XPU_UNARY(erfc_##suffix, fn::Erfc, T, T)   \
  XPU_UNARY(sqrt_##suffix, fn::Sqrt, T, T)   \
  XPU_UNARY(rsqrt_##suffix, fn::Rsqrt, T, T)
XPU_FLOATS(EXPONENTIAL)
