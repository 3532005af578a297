// Quotients of integers, floor division and its remainder.
#include "kernels/common/elementwise.hpp"

#define QUOTIENT(suffix, T) GPU_BINARY(quotient_##suffix, fn::Quotient, T, T, T)
DVT_INTEGERS(QUOTIENT)

#define FLOOR_DIVISION(suffix, T)                             \
  GPU_BINARY(floor_divide_##suffix, fn::FloorDivide, T, T, T) \
  GPU_BINARY(remainder_##suffix, fn::Remainder, T, T, T)
DVT_NUMBERS(FLOOR_DIVISION)
