// Signs: of numbers, and what is left without them.
#include "kernels/common/elementwise.hpp"

#define SIGN(suffix, T) XPU_UNARY(sign_##suffix, fn::Sign, T, T)
XPU_NUMBERS(SIGN)

#define ABS(suffix, T) XPU_UNARY(abs_##suffix, fn::Abs, T, T)
XPU_SIGNED(ABS)

#define COPYSIGN(suffix, T) XPU_BINARY(copysign_##suffix, fn::Copysign, T, T, T)
XPU_FLOATS(COPYSIGN)
