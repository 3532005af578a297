// Hyperbolic functions and their inverses, as exact as SYCL promises.
#include "kernels/common/elementwise.hpp"

#define HYPERBOLIC(suffix, T)                \
  XPU_UNARY(sinh_##suffix, fn::Sinh, T, T)   \
  XPU_UNARY(cosh_##suffix, fn::Cosh, T, T)   \
  XPU_UNARY(asinh_##suffix, fn::Asinh, T, T) \
  XPU_UNARY(acosh_##suffix, fn::Acosh, T, T) \
  XPU_UNARY(atanh_##suffix, fn::Atanh, T, T)
XPU_FLOATS(HYPERBOLIC)
