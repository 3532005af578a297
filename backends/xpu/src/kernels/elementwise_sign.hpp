// Signs: of numbers, and what is left without them.
#include "kernels/common/elementwise.hpp"

namespace {
struct Sign {  // NaN stays
  template <class T>
  T operator()(T x) const {
    return x != x ? x : T((x > 0) - (x < 0));
  }
};
struct Abs {  // the least integer is its own
  template <class T>
  T operator()(T x) const {
    return x < 0 ? T(uint64_t(0) - uint64_t(x)) : x;
  }
};
struct Copysign {
  template <class T>
  T operator()(T a, T b) const {
    return sycl::copysign(a, b);
  }
};
}  // namespace

#define SIGN(suffix, T) XPU_UNARY(sign_##suffix, Sign, T, T)
XPU_NUMBERS(SIGN)

#define ABS(suffix, T) XPU_UNARY(abs_##suffix, Abs, T, T)
XPU_SIGNED(ABS)

#define COPYSIGN(suffix, T) XPU_BINARY(copysign_##suffix, Copysign, T, T, T)
XPU_FLOATS(COPYSIGN)
