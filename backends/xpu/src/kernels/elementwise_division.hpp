// Quotients of integers; floor division with its remainder.
#include "kernels/common/elementwise.hpp"

#define QUOTIENT(suffix, T) XPU_BINARY(quotient_##suffix, fn::Quotient, T, T, T)
XPU_INTEGERS(QUOTIENT)

#define FLOOR_DIVISION(suffix, T)                             \
  XPU_BINARY(floor_divide_##suffix, fn::FloorDivide, T, T, T) \
  XPU_BINARY(remainder_##suffix, fn::Remainder, T, T, T)
XPU_NUMBERS(FLOOR_DIVISION)
