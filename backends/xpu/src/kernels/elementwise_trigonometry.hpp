// Trigonometric functions and their inverses. SYCL promises too little of most; the fits are those of the schema.
#include "kernels/common/elementwise.hpp"

#define TRIGONOMETRY(suffix, T)            \
  XPU_UNARY(sin_##suffix, fn::Sin, T, T)   \
  XPU_UNARY(cos_##suffix, fn::Cos, T, T)   \
  XPU_UNARY(tan_##suffix, fn::Tan, T, T)   \
  XPU_UNARY(asin_##suffix, fn::Asin, T, T) \
  XPU_UNARY(acos_##suffix, fn::Acos, T, T) \
  XPU_UNARY(atan_##suffix, fn::Atan, T, T) \
  XPU_BINARY(atan2_##suffix, fn::Atan2, T, T, T)
XPU_FLOATS(TRIGONOMETRY)
