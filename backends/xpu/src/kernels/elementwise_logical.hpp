// Logic of numbers, which are true unless they are 0; that of bool is bitwise.
#include "kernels/common/elementwise.hpp"

#define LOGICAL(suffix, T)                                     \
  XPU_BINARY(logical_and_##suffix, fn::LogicalAnd, bool, T, T) \
  XPU_BINARY(logical_or_##suffix, fn::LogicalOr, bool, T, T)   \
  XPU_BINARY(logical_xor_##suffix, fn::LogicalXor, bool, T, T) \
  XPU_UNARY(logical_not_##suffix, fn::LogicalNot, bool, T)
XPU_NUMBERS(LOGICAL)
