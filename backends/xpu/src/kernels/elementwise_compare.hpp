// Comparisons: false where either is NaN, but for not_equal; and which kind of number a float is.
#include "kernels/common/elementwise.hpp"

#define COMPARISONS(suffix, T)                               \
  XPU_BINARY(equal_##suffix, fn::Equal, bool, T, T)          \
  XPU_BINARY(not_equal_##suffix, fn::NotEqual, bool, T, T)   \
  XPU_BINARY(less_##suffix, fn::Less, bool, T, T)            \
  XPU_BINARY(less_equal_##suffix, fn::LessEqual, bool, T, T) \
  XPU_BINARY(greater_equal_##suffix, fn::GreaterEqual, bool, T, T)
XPU_ALL(COMPARISONS)

#define KINDS(suffix, T)                        \
  XPU_UNARY(isinf_##suffix, fn::IsInf, bool, T) \
  XPU_UNARY(isfinite_##suffix, fn::IsFinite, bool, T)
XPU_FLOATS(KINDS)
