// Hyperbolic functions and their inverses.
#include "kernels/common/elementwise.hpp"

#define HYPERBOLIC(suffix, T)                \
  GPU_UNARY(sinh_##suffix, fn::Sinh, T, T)   \
  GPU_UNARY(cosh_##suffix, fn::Cosh, T, T)   \
  GPU_UNARY(asinh_##suffix, fn::Asinh, T, T) \
  GPU_UNARY(acosh_##suffix, fn::Acosh, T, T) \
  GPU_UNARY(atanh_##suffix, fn::Atanh, T, T)
DVT_FLOATS(HYPERBOLIC)
