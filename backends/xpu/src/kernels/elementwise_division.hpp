// Quotients of integers; floor division with its remainder.
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
struct FloorDivide {  // of floats the floor of the rounded quotient
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      const T q = Quotient()(a, b);
      return std::is_signed_v<T> && b != 0 && (a ^ b) < 0 && q * b != a ? T(q - 1) : q;
    } else return sycl::floor(a / b);
  }
};
struct Remainder {  // with the sign of b; of integers by 0 it is 0
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      const T r = b == 0 || (std::is_signed_v<T> && b == T(-1)) ? T(0) : T(a % b);
      return std::is_signed_v<T> && r != 0 && (r ^ b) < 0 ? T(r + b) : r;
    } else {
      // The CPU device's fmod of a subnormal number and itself is that number.
      const T r = a == b && b != 0 && sycl::isfinite(b) ? T(0) : sycl::fmod(a, b);
      if (r == 0) return sycl::copysign(T(0), b);
      return (r < 0) != (b < 0) ? r + b : r;
    }
  }
};
}  // namespace

#define QUOTIENT(suffix, T) XPU_BINARY(quotient_##suffix, Quotient, T, T, T)
XPU_INTEGERS(QUOTIENT)

#define FLOOR_DIVISION(suffix, T)                         \
  XPU_BINARY(floor_divide_##suffix, FloorDivide, T, T, T) \
  XPU_BINARY(remainder_##suffix, Remainder, T, T, T)
XPU_NUMBERS(FLOOR_DIVISION)
