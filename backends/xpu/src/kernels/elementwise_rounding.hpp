// Rounding to integers; neighbours of floats.
#include "kernels/common/elementwise.hpp"

#define ROUNDING(suffix, T) XPU_UNARY(floor_##suffix, fn::Floor, T, T)
XPU_NUMBERS(ROUNDING)

#define ROUNDING_FLOATS(suffix, T)           \
  XPU_UNARY(ceil_##suffix, fn::Ceil, T, T)   \
  XPU_UNARY(trunc_##suffix, fn::Trunc, T, T) \
  XPU_UNARY(round_##suffix, fn::Round, T, T)
XPU_FLOATS(ROUNDING_FLOATS)

XPU_BINARY(nextafter_f32, fn::Nextafter, float, float, float)
XPU_BINARY(nextafter_f64, fn::Nextafter, double, double, double)
