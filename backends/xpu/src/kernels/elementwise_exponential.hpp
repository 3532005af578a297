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
  XPU_UNARY(sqrt_##suffix, Sqrt, T, T)   \
  XPU_UNARY(rsqrt_##suffix, Rsqrt, T, T)
XPU_FLOATS(EXPONENTIAL)
