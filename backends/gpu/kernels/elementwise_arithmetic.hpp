// Sums, differences, products, quotients of floats, extrema, clipping. The kernels of unsigned integers serve
// signed ones where the bits of the results are the same.
#include "kernels/common/elementwise.hpp"

#define ARITHMETIC(suffix, T)                          \
  GPU_BINARY(add_##suffix, fn::Add, T, T, T)           \
  GPU_BINARY(subtract_##suffix, fn::Subtract, T, T, T) \
  GPU_BINARY(multiply_##suffix, fn::Multiply, T, T, T)
DVT_UNSIGNED(ARITHMETIC)
DVT_FLOATS(ARITHMETIC)

#define DIVISION(suffix, T) GPU_BINARY(divide_##suffix, fn::Divide, T, T, T)
DVT_FLOATS(DIVISION)

#define EXTREMA(suffix, T)                           \
  GPU_BINARY(maximum_##suffix, fn::Maximum, T, T, T) \
  GPU_BINARY(minimum_##suffix, fn::Minimum, T, T, T)
DVT_NUMBERS(EXTREMA)

#define CLIP(suffix, T) GPU_TERNARY(clip_##suffix, fn::Clip, T, T, T, T)
DVT_NUMBERS(CLIP)
