// Activation functions. What some take beside x comes as a second input.
#include "kernels/common/elementwise.hpp"
#include "kernels/common/special.hpp"

namespace {
struct Relu {  // NaN stays
  template <class T>
  T operator()(T x) const {
    return x > 0 || x != x ? x : T(0);
  }
};
struct LeakyRelu {
  template <class T>
  T operator()(T x, T slope) const {
    return x < 0 ? x * slope : x;
  }
};
struct Elu {
  template <class T>
  T operator()(T x, T alpha) const {
    return x > 0 ? x : sycl::expm1(x) * alpha;
  }
};
struct Selu {
  template <class T>
  T operator()(T x) const {
    constexpr T alpha = T(1.6732632423543772), scale = T(1.0507009873554805);
    return x > 0 ? x * scale : sycl::expm1(x) * (alpha * scale);
  }
};
struct Softplus {  // right at any size; x * beta may overflow
  template <class T>
  T operator()(T x, T beta) const {
    const T bound = (beta > 0) == (x > 0) ? x : T(0);
    return sycl::log1p(xpu::math::exp(-sycl::fabs(x * beta))) / beta + bound;
  }
};
struct Logsigmoid {
  template <class T>
  T operator()(T x) const {
    return -Softplus()(-x, T(1));
  }
};
struct Hardsigmoid {
  template <class T>
  T operator()(T x) const {
    const T y = (x + 3) / 6;
    return y < 0 ? T(0) : y > 1 ? T(1) : y;
  }
};
struct Hardswish {  // 0 from -3 downwards
  template <class T>
  T operator()(T x) const {
    return (x < -3 ? T(-3) : x) * Hardsigmoid()(x);
  }
};
struct Sigmoid {
  template <class T>
  T operator()(T x) const {
    const T e = xpu::math::exp(-sycl::fabs(x));
    return (x < 0 ? e : T(1)) / (1 + e);
  }
};
// From where x exp(x) is 0 on, x stays as it is: no infinity times 0.
template <class T>
T above_vanished(T x) {
  const T vanished = sizeof(T) == 8 ? T(-1600) : T(-250);
  return x < vanished ? vanished : x;
}
struct Silu {
  template <class T>
  T operator()(T x) const {
    return xpu::math::gate(above_vanished(x), x);
  }
};
struct Mish {  // x tanh(softplus(x)); exp(-|x|) comes as two halves, as in gate
  template <class T>
  T operator()(T x) const {
    x = above_vanished(x);
    const T half = xpu::math::exp(sycl::fabs(x) * T(-0.5)), e = half * half, large = 1 + 2 * e;
    return x < 0 ? x * half * half * (e + 2) / (e * (e + 2) + 2) : x * (large / (large + 2 * e * e));
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

#define ACTIVATION(suffix, T)                                       \
  XPU_UNARY(relu_##suffix, Relu, T, T)                              \
  XPU_BINARY(leaky_relu_##suffix, LeakyRelu, T, T, xpu::Compute<T>) \
  XPU_BINARY(elu_##suffix, Elu, T, T, xpu::Compute<T>)              \
  XPU_UNARY(selu_##suffix, Selu, T, T)                              \
  XPU_BINARY(softplus_##suffix, Softplus, T, T, xpu::Compute<T>)    \
  XPU_UNARY(logsigmoid_##suffix, Logsigmoid, T, T)                  \
  XPU_UNARY(hardsigmoid_##suffix, Hardsigmoid, T, T)                \
  XPU_UNARY(hardswish_##suffix, Hardswish, T, T)                    \
  XPU_UNARY(sigmoid_##suffix, Sigmoid, T, T)                        \
  XPU_UNARY(silu_##suffix, Silu, T, T)                              \
  XPU_UNARY(mish_##suffix, Mish, T, T)                              \
  XPU_UNARY(gelu_##suffix, Gelu, T, T)                              \
  XPU_UNARY(gelu_tanh_##suffix, GeluTanh, T, T)
XPU_FLOATS(ACTIVATION)
