// Bitwise operations, which are logic for bool, and shifts; by size where the sign does not matter.
#include "kernels/common/elementwise.hpp"

#define LOGIC(suffix, T)                                    \
  GPU_BINARY(bitwise_and_##suffix, fn::BitwiseAnd, T, T, T) \
  GPU_BINARY(bitwise_or_##suffix, fn::BitwiseOr, T, T, T)   \
  GPU_BINARY(bitwise_xor_##suffix, fn::BitwiseXor, T, T, T)
DVT_UNSIGNED(LOGIC)

#define SHIFT_LEFT(suffix, T) GPU_BINARY(bitwise_left_shift_##suffix, fn::ShiftLeft, T, T, T)
DVT_UNSIGNED(SHIFT_LEFT)

#define SHIFT_RIGHT(suffix, T) GPU_BINARY(bitwise_right_shift_##suffix, fn::ShiftRight, T, T, T)
DVT_INTEGERS(SHIFT_RIGHT)
