// Comparisons, false where either operand is NaN except for not_equal, and the kind of a float. The other
// comparisons exchange the operands.
#include "kernels/common/elementwise.hpp"

#define EQUALITY(suffix, T)                         \
  GPU_BINARY(equal_##suffix, fn::Equal, bool, T, T) \
  GPU_BINARY(not_equal_##suffix, fn::NotEqual, bool, T, T)
DVT_UNSIGNED(EQUALITY)
DVT_FLOATS(EQUALITY)

#define ORDER(suffix, T)                          \
  GPU_BINARY(less_##suffix, fn::Less, bool, T, T) \
  GPU_BINARY(less_equal_##suffix, fn::LessEqual, bool, T, T)
DVT_NUMBERS(ORDER)

#define KINDS(suffix, T)                        \
  GPU_UNARY(isinf_##suffix, fn::IsInf, bool, T) \
  GPU_UNARY(isfinite_##suffix, fn::IsFinite, bool, T)
DVT_FLOATS(KINDS)
