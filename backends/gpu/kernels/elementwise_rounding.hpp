// Rounding to integers, and the next float.
#include "kernels/common/elementwise.hpp"

#define ROUNDING(suffix, T) GPU_UNARY(floor_##suffix, fn::Floor, T, T)
DVT_NUMBERS(ROUNDING)

#define ROUNDING_FLOATS(suffix, T)           \
  GPU_UNARY(ceil_##suffix, fn::Ceil, T, T)   \
  GPU_UNARY(trunc_##suffix, fn::Trunc, T, T) \
  GPU_UNARY(round_##suffix, fn::Round, T, T)
DVT_FLOATS(ROUNDING_FLOATS)

GPU_BINARY(nextafter_f32, fn::Nextafter, float, float, float)
GPU_BINARY(nextafter_f64, fn::Nextafter, double, double, double)
