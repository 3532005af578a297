// Exponentials, logarithms and roots.
#include "kernels/common/elementwise.hpp"
#include "kernels/common/math.hpp"

namespace {
struct Exp {
  template <class T>
  T operator()(T x) const {
    return xpu::math::exp(x);
  }
};
struct Log {
  template <class T>
  T operator()(T x) const {
    return xpu::math::log(x);
  }
};
struct Sqrt {
  template <class T>
  T operator()(T x) const {
    return sycl::sqrt(x);
  }
};
}  // namespace

#define EXPONENTIAL(suffix, T)       \
  XPU_UNARY(exp_##suffix, Exp, T, T) \
  XPU_UNARY(log_##suffix, Log, T, T) \
  XPU_UNARY(sqrt_##suffix, Sqrt, T, T)
XPU_FLOATS(EXPONENTIAL)
