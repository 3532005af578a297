// Bits, on bool logic, and shifts.
#include "kernels/common/elementwise.hpp"

#define LOGIC(suffix, T)                                    \
  XPU_BINARY(bitwise_and_##suffix, fn::BitwiseAnd, T, T, T) \
  XPU_BINARY(bitwise_or_##suffix, fn::BitwiseOr, T, T, T)   \
  XPU_BINARY(bitwise_xor_##suffix, fn::BitwiseXor, T, T, T)
LOGIC(bool, bool)
XPU_INTEGERS(LOGIC)

#define SHIFTS(suffix, T)                                         \
  XPU_BINARY(bitwise_left_shift_##suffix, fn::ShiftLeft, T, T, T) \
  XPU_BINARY(bitwise_right_shift_##suffix, fn::ShiftRight, T, T, T)
XPU_INTEGERS(SHIFTS)
