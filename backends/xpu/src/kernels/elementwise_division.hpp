// Quotients and roots, correctly rounded; quotients of integers.
#include "kernels/common/elementwise.hpp"

namespace {
struct Divide {
  template <class T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
struct Sqrt {
  template <class T>
  T operator()(T x) const {
    return sycl::sqrt(x);
  }
};
struct Quotient {  // x / 0 is 0, and the least one / -1 is itself
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == T(-1)) return T(uint64_t(0) - uint64_t(a));
    return T(a / b);
  }
};
}  // namespace

#define DIVISION(suffix, T)                    \
  XPU_BINARY(divide_##suffix, Divide, T, T, T) \
  XPU_UNARY(sqrt_##suffix, Sqrt, T, T)
XPU_FLOATS(DIVISION)

#define QUOTIENT(suffix, T) XPU_BINARY(quotient_##suffix, Quotient, T, T, T)
XPU_INTEGERS(QUOTIENT)
