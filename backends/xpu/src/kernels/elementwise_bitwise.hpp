// Bits, on bool logic, and shifts.
#include "kernels/common/elementwise.hpp"

namespace {
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return T(a & b);
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return T(a | b);
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return T(a ^ b);
  }
};
// From the type's width on nothing is left but the sign; counts below 0 are none either.
struct ShiftLeft {
  template <class T>
  T operator()(T a, T b) const {
    return uint64_t(b) < 8 * sizeof(T) ? T(uint64_t(a) << uint64_t(b)) : T(0);
  }
};
struct ShiftRight {
  template <class T>
  T operator()(T a, T b) const {
    return uint64_t(b) < 8 * sizeof(T) ? T(a >> b) : T(a < 0 ? -1 : 0);
  }
};
}  // namespace

#define LOGIC(suffix, T)                         \
  XPU_BINARY(bitwise_and_##suffix, And, T, T, T) \
  XPU_BINARY(bitwise_or_##suffix, Or, T, T, T)   \
  XPU_BINARY(bitwise_xor_##suffix, Xor, T, T, T)
LOGIC(bool, bool)
XPU_INTEGERS(LOGIC)

#define SHIFTS(suffix, T)                                     \
  XPU_BINARY(bitwise_left_shift_##suffix, ShiftLeft, T, T, T) \
  XPU_BINARY(bitwise_right_shift_##suffix, ShiftRight, T, T, T)
XPU_INTEGERS(SHIFTS)
