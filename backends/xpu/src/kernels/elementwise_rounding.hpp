// Rounding to integers.
#include "kernels/common/elementwise.hpp"

namespace {
struct Floor {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) return x;
    else return sycl::floor(x);
  }
};
struct Ceil {
  template <class T>
  T operator()(T x) const {
    return sycl::ceil(x);
  }
};
struct Trunc {
  template <class T>
  T operator()(T x) const {
    return sycl::trunc(x);
  }
};
struct Round {  // ties to even
  template <class T>
  T operator()(T x) const {
    return sycl::rint(x);
  }
};
}  // namespace

#define ROUNDING(suffix, T) XPU_UNARY(floor_##suffix, Floor, T, T)
XPU_NUMBERS(ROUNDING)

#define ROUNDING_FLOATS(suffix, T)       \
  XPU_UNARY(ceil_##suffix, Ceil, T, T)   \
  XPU_UNARY(trunc_##suffix, Trunc, T, T) \
  XPU_UNARY(round_##suffix, Round, T, T)
XPU_FLOATS(ROUNDING_FLOATS)
