// Signs: of numbers, and what is left without them.
#include "kernels/common/elementwise.cuh"

#define SIGN(suffix, T) GPU_UNARY(sign_##suffix, fn::Sign, T, T)
GPU_NUMBERS(SIGN)

#define ABS(suffix, T) GPU_UNARY(abs_##suffix, fn::Abs, T, T)
GPU_SIGNED(ABS)

#define COPYSIGN(suffix, T) GPU_BINARY(copysign_##suffix, fn::Copysign, T, T, T)
GPU_FLOATS(COPYSIGN)
