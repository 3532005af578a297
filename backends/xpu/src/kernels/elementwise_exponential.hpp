// Exponentials, logarithms and roots. What SYCL promises is exact enough for expm1, log1p and tanh.
#include "kernels/common/elementwise.hpp"
#include "kernels/common/special.hpp"

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
struct Expm1 {
  template <class T>
  T operator()(T x) const {
    return sycl::expm1(x);
  }
};
struct Log1p {
  template <class T>
  T operator()(T x) const {
    return sycl::log1p(x);
  }
};
struct Tanh {
  template <class T>
  T operator()(T x) const {
    return sycl::tanh(x);
  }
};
struct Erf {
  template <class T>
  T operator()(T x) const {
    return xpu::math::erf(x);
  }
};
struct Erfc {  // its upper tail directly, never as 1 - erf
  template <class T>
  T operator()(T x) const {
    const T a = xpu::math::capped(sycl::fabs(x), sizeof(T) == 8 ? T(27.5) : T(10.5));
    const T tail = xpu::math::times_exp_minus_square(xpu::math::erfcx(a, T(1)), a, T(1));
    return x < 0 ? 2 - tail : tail;
  }
};
struct Sqrt {
  template <class T>
  T operator()(T x) const {
    return sycl::sqrt(x);
  }
};
struct Rsqrt {
  template <class T>
  T operator()(T x) const {
    return 1 / sycl::sqrt(x);
  }
};
}  // namespace

#define EXPONENTIAL(suffix, T)           \
  XPU_UNARY(exp_##suffix, Exp, T, T)     \
  XPU_UNARY(expm1_##suffix, Expm1, T, T) \
  XPU_UNARY(log_##suffix, Log, T, T)     \
  XPU_UNARY(log1p_##suffix, Log1p, T, T) \
  XPU_UNARY(tanh_##suffix, Tanh, T, T)   \
  XPU_UNARY(erf_##suffix, Erf, T, T)     \
  XPU_UNARY(erfc_##suffix, Erfc, T, T)   \
  XPU_UNARY(sqrt_##suffix, Sqrt, T, T)   \
  XPU_UNARY(rsqrt_##suffix, Rsqrt, T, T)
XPU_FLOATS(EXPONENTIAL)
