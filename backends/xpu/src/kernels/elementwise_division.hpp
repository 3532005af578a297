// Quotients of integers, and floor division of floats with its remainder.
#include "kernels/common/elementwise.hpp"

namespace {
struct Quotient {  // x / 0 is 0, and the least one / -1 is itself
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == T(-1)) return T(uint64_t(0) - uint64_t(a));
    return T(a / b);
  }
};
struct FloorDivide {
  template <class T>
  T operator()(T a, T b) const {
    return sycl::floor(a / b);
  }
};
struct Remainder {  // with the sign of b
  template <class T>
  T operator()(T a, T b) const {
    const T r = sycl::fmod(a, b);
    if (r == 0) return sycl::copysign(T(0), b);
    return (r < 0) != (b < 0) ? r + b : r;
  }
};
}  // namespace

#define QUOTIENT(suffix, T) XPU_BINARY(quotient_##suffix, Quotient, T, T, T)
XPU_INTEGERS(QUOTIENT)

#define FLOOR_DIVISION(suffix, T)                         \
  XPU_BINARY(floor_divide_##suffix, FloorDivide, T, T, T) \
  XPU_BINARY(remainder_##suffix, Remainder, T, T, T)
XPU_FLOATS(FLOOR_DIVISION)
