// Signs, absolute values of integers, copysign.
#include "kernels/common/elementwise.hpp"

#define SIGN(suffix, T) GPU_UNARY(sign_##suffix, fn::Sign, T, T)
DVT_NUMBERS(SIGN)

#define ABS(suffix, T) GPU_UNARY(abs_##suffix, fn::Abs, T, T)
DVT_SIGNED(ABS)

#define COPYSIGN(suffix, T) GPU_BINARY(copysign_##suffix, fn::Copysign, T, T, T)
DVT_FLOATS(COPYSIGN)
