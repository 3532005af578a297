// Powers; exponentials and logarithms to other bases than e; lengths. The methods are those of the schema's bodies.
#include "kernels/common/elementwise.hpp"

#define POWER(suffix, T) XPU_BINARY(pow_##suffix, fn::Pow, T, T, T)
XPU_NUMBERS(POWER)

#define POWER_FLOATS(suffix, T)                  \
  XPU_UNARY(exp2_##suffix, fn::Exp2, T, T)       \
  XPU_UNARY(log2_##suffix, fn::Log2, T, T)       \
  XPU_UNARY(log10_##suffix, fn::Log10, T, T)     \
  XPU_BINARY(hypot_##suffix, fn::Hypot, T, T, T) \
  XPU_BINARY(logaddexp_##suffix, fn::Logaddexp, T, T, T)
XPU_FLOATS(POWER_FLOATS)
