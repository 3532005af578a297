// Quotients of integers.
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
}  // namespace

#define QUOTIENT(suffix, T) XPU_BINARY(quotient_##suffix, Quotient, T, T, T)
XPU_INTEGERS(QUOTIENT)
