// Hyperbolic functions and their inverses, as exact as SYCL promises.
#include "kernels/common/elementwise.hpp"

namespace {
struct Sinh {
  template <class T>
  T operator()(T x) const {
    return sycl::sinh(x);
  }
};
struct Cosh {
  template <class T>
  T operator()(T x) const {
    return sycl::cosh(x);
  }
};
struct Asinh {
  template <class T>
  T operator()(T x) const {
    return sycl::asinh(x);
  }
};
struct Acosh {
  template <class T>
  T operator()(T x) const {
    return sycl::acosh(x);
  }
};
struct Atanh {
  template <class T>
  T operator()(T x) const {
    return sycl::atanh(x);
  }
};
}  // namespace

#define HYPERBOLIC(suffix, T)            \
  XPU_UNARY(sinh_##suffix, Sinh, T, T)   \
  XPU_UNARY(cosh_##suffix, Cosh, T, T)   \
  XPU_UNARY(asinh_##suffix, Asinh, T, T) \
  XPU_UNARY(acosh_##suffix, Acosh, T, T) \
  XPU_UNARY(atanh_##suffix, Atanh, T, T)
XPU_FLOATS(HYPERBOLIC)
