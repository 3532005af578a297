// Comparisons, of which others are negations or exchange the operands: false where either is NaN, but for
// not_equal; and which kind of number a float is.
#include "kernels/common/elementwise.cuh"

#define EQUALITY(suffix, T)                         \
  GPU_BINARY(equal_##suffix, fn::Equal, bool, T, T) \
  GPU_BINARY(not_equal_##suffix, fn::NotEqual, bool, T, T)
GPU_UNSIGNED(EQUALITY)
GPU_FLOATS(EQUALITY)

#define ORDER(suffix, T)                          \
  GPU_BINARY(less_##suffix, fn::Less, bool, T, T) \
  GPU_BINARY(less_equal_##suffix, fn::LessEqual, bool, T, T)
GPU_NUMBERS(ORDER)

#define KINDS(suffix, T)                        \
  GPU_UNARY(isinf_##suffix, fn::IsInf, bool, T) \
  GPU_UNARY(isfinite_##suffix, fn::IsFinite, bool, T)
GPU_FLOATS(KINDS)
