// Logic of numbers, which are true unless they are 0; logic of bool is bitwise. Integers by size.
#include "kernels/common/elementwise.hpp"

#define LOGICAL(suffix, T)                                     \
  GPU_BINARY(logical_and_##suffix, fn::LogicalAnd, bool, T, T) \
  GPU_BINARY(logical_or_##suffix, fn::LogicalOr, bool, T, T)   \
  GPU_BINARY(logical_xor_##suffix, fn::LogicalXor, bool, T, T) \
  GPU_UNARY(logical_not_##suffix, fn::LogicalNot, bool, T)
DVT_UNSIGNED(LOGICAL)
DVT_FLOATS(LOGICAL)
