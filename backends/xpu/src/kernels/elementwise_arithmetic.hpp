// Sums, differences, products, quotients of floats; the larger or smaller of two, and what lies between two.
#include "kernels/common/elementwise.hpp"

#define ARITHMETIC(suffix, T)                          \
  XPU_BINARY(add_##suffix, fn::Add, T, T, T)           \
  XPU_BINARY(subtract_##suffix, fn::Subtract, T, T, T) \
  XPU_BINARY(multiply_##suffix, fn::Multiply, T, T, T)
XPU_NUMBERS(ARITHMETIC)

#define DIVISION(suffix, T) XPU_BINARY(divide_##suffix, fn::Divide, T, T, T)
XPU_FLOATS(DIVISION)

#define EXTREMA(suffix, T)                           \
  XPU_BINARY(maximum_##suffix, fn::Maximum, T, T, T) \
  XPU_BINARY(minimum_##suffix, fn::Minimum, T, T, T)
XPU_ALL(EXTREMA)

#define CLIP(suffix, T) XPU_TERNARY(clip_##suffix, fn::Clip, T, T, T, T)
XPU_NUMBERS(CLIP)
