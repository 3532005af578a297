// Activation functions.
#include "kernels/common/elementwise.hpp"
#include "kernels/common/special.hpp"

namespace {
struct Relu {  // NaN stays
  template <class T>
  T operator()(T x) const {
    return x > 0 || x != x ? x : T(0);
  }
};
struct Sigmoid {
  template <class T>
  T operator()(T x) const {
    const T e = xpu::math::exp(-sycl::fabs(x));
    return (x < 0 ? e : T(1)) / (1 + e);
  }
};
struct Silu {  // from where x exp(x) is 0 on, x stays as it is: no infinity times 0
  template <class T>
  T operator()(T x) const {
    const T vanished = sizeof(T) == 8 ? T(-1600) : T(-250);
    return xpu::math::gate(x < vanished ? vanished : x, x);
  }
};
struct Gelu {
  template <class T>
  T operator()(T x) const {
    return xpu::math::normal_gate(x);
  }
};
struct GeluTanh {  // x (1 + tanh(z / 2)) / 2 = x sigmoid(z)
  template <class T>
  T operator()(T x) const {
    x = x < -25 ? T(-25) : x;
    return xpu::math::gate(x, x * (T(1.5957691216057308) + x * x * T(0.07135481627260025)));
  }
};
}  // namespace

#define ACTIVATION(suffix, T)                \
  XPU_UNARY(relu_##suffix, Relu, T, T)       \
  XPU_UNARY(sigmoid_##suffix, Sigmoid, T, T) \
  XPU_UNARY(silu_##suffix, Silu, T, T)       \
  XPU_UNARY(gelu_##suffix, Gelu, T, T)       \
  XPU_UNARY(gelu_tanh_##suffix, GeluTanh, T, T)
XPU_FLOATS(ACTIVATION)
