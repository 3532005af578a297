// Trigonometric functions and their inverses.
#include "kernels/common/elementwise.hpp"

#define TRIGONOMETRY(suffix, T)            \
  GPU_UNARY(sin_##suffix, fn::Sin, T, T)   \
  GPU_UNARY(cos_##suffix, fn::Cos, T, T)   \
  GPU_UNARY(tan_##suffix, fn::Tan, T, T)   \
  GPU_UNARY(asin_##suffix, fn::Asin, T, T) \
  GPU_UNARY(acos_##suffix, fn::Acos, T, T) \
  GPU_UNARY(atan_##suffix, fn::Atan, T, T) \
  GPU_BINARY(atan2_##suffix, fn::Atan2, T, T, T)
DVT_FLOATS(TRIGONOMETRY)
