// Rounding to integers; neighbours of floats.
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
struct Nextafter {  // zero is reached from its own side
  template <class T>
  T operator()(T x, T y) const {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    if (x == y || x != x || y != y) return x == y ? y : x + y;
    if (x == 0) return sycl::copysign(sycl::bit_cast<T>(Bits(1)), y);
    const bool outwards = (x < y) == (x > 0);
    return sycl::bit_cast<T>(Bits(sycl::bit_cast<Bits>(x) + (outwards ? Bits(1) : Bits(-1))));
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

XPU_BINARY(nextafter_f32, Nextafter, float, float, float)
XPU_BINARY(nextafter_f64, Nextafter, double, double, double)
