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
}  // namespace

#define ROUNDING(suffix, T) XPU_UNARY(floor_##suffix, Floor, T, T)
XPU_NUMBERS(ROUNDING)
