// Powers, exponentials and logarithms to other bases than e, lengths.
#include "kernels/common/elementwise.hpp"

#define POWER(suffix, T) GPU_BINARY(pow_##suffix, fn::Pow, T, T, T)
DVT_NUMBERS(POWER)

#define POWER_FLOATS(suffix, T)                  \
  GPU_UNARY(exp2_##suffix, fn::Exp2, T, T)       \
  GPU_UNARY(log2_##suffix, fn::Log2, T, T)       \
  GPU_UNARY(log10_##suffix, fn::Log10, T, T)     \
  GPU_BINARY(hypot_##suffix, fn::Hypot, T, T, T) \
  GPU_BINARY(logaddexp_##suffix, fn::Logaddexp, T, T, T)
DVT_FLOATS(POWER_FLOATS)
