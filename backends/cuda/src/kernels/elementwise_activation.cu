// Activation functions. What some take beside x comes as a second input.
#include "kernels/common/elementwise.cuh"
#include "kernels/common/special.cuh"

namespace {
struct Relu {  // NaN stays
  template <class T>
  __device__ T operator()(T x) const {
    return x > 0 || x != x ? x : T(0);
  }
};
struct LeakyRelu {
  template <class T>
  __device__ T operator()(T x, T slope) const {
    return x < 0 ? x * slope : x;
  }
};
struct Elu : gpu::Long {
  template <class T>
  __device__ T operator()(T x, T alpha) const {
    return x > 0 ? x : gpu::math::expm1(x) * alpha;
  }
};
struct Selu : gpu::Long {
  template <class T>
  __device__ T operator()(T x) const {
    constexpr T alpha = T(1.6732632423543772), scale = T(1.0507009873554805);
    return x > 0 ? x * scale : gpu::math::expm1(x) * (alpha * scale);
  }
};
struct Softplus : gpu::Long {  // right at any size; x * beta may overflow
  template <class T>
  __device__ T operator()(T x, T beta) const {
    const T bound = (beta > 0) == (x > 0) ? x : T(0);
    return gpu::math::log1p(gpu::math::exp(-gpu::math::abs(x * beta))) / beta + bound;
  }
};
struct Logsigmoid : gpu::Long {
  template <class T>
  __device__ T operator()(T x) const {
    return -Softplus()(-x, T(1));
  }
};
struct Hardsigmoid {
  template <class T>
  __device__ T operator()(T x) const {
    const T y = (x + 3) / 6;
    return y < 0 ? T(0) : y > 1 ? T(1) : y;
  }
};
struct Hardswish {  // 0 from -3 downwards
  template <class T>
  __device__ T operator()(T x) const {
    return (x < -3 ? T(-3) : x) * Hardsigmoid()(x);
  }
};
struct Sigmoid : gpu::Long {
  template <class T>
  __device__ T operator()(T x) const {
    const T e = gpu::math::exp(-gpu::math::abs(x));
    return (x < 0 ? e : T(1)) / (1 + e);
  }
};
// From where x exp(x) is 0 on, x stays as it is: no infinity times 0.
template <class T>
__device__ T above_vanished(T x) {
  const T vanished = sizeof(T) == 8 ? T(-1600) : T(-250);
  return x < vanished ? vanished : x;
}
struct Silu : gpu::Long {
  template <class T>
  __device__ T operator()(T x) const {
    return gpu::math::gate(above_vanished(x), x);
  }
};
struct Mish : gpu::Long {  // x tanh(softplus(x)); exp(-|x|) comes as two halves, as in gate
  template <class T>
  __device__ T operator()(T x) const {
    x = above_vanished(x);
    const T half = gpu::math::exp(gpu::math::abs(x) * T(-0.5)), e = half * half, large = 1 + 2 * e;
    return x < 0 ? x * half * half * (e + 2) / (e * (e + 2) + 2) : x * (large / (large + 2 * e * e));
  }
};
struct Gelu : gpu::Long {
  template <class T>
  __device__ T operator()(T x) const {
    return gpu::math::normal_gate(x);
  }
};
struct GeluTanh : gpu::Long {  // x (1 + tanh(z / 2)) / 2 = x sigmoid(z)
  template <class T>
  __device__ T operator()(T x) const {
    x = x < -25 ? T(-25) : x;
    return gpu::math::gate(x, x * (T(1.5957691216057308) + x * x * T(0.07135481627260025)));
  }
};
}  // namespace

#define ACTIVATION(suffix, T)                                       \
  GPU_UNARY(relu_##suffix, Relu, T, T)                              \
  GPU_BINARY(leaky_relu_##suffix, LeakyRelu, T, T, gpu::Compute<T>) \
  GPU_BINARY(elu_##suffix, Elu, T, T, gpu::Compute<T>)              \
  GPU_UNARY(selu_##suffix, Selu, T, T)                              \
  GPU_BINARY(softplus_##suffix, Softplus, T, T, gpu::Compute<T>)    \
  GPU_UNARY(logsigmoid_##suffix, Logsigmoid, T, T)                  \
  GPU_UNARY(hardsigmoid_##suffix, Hardsigmoid, T, T)                \
  GPU_UNARY(hardswish_##suffix, Hardswish, T, T)                    \
  GPU_UNARY(sigmoid_##suffix, Sigmoid, T, T)                        \
  GPU_UNARY(silu_##suffix, Silu, T, T)                              \
  GPU_UNARY(mish_##suffix, Mish, T, T)                              \
  GPU_UNARY(gelu_##suffix, Gelu, T, T)                              \
  GPU_UNARY(gelu_tanh_##suffix, GeluTanh, T, T)
GPU_FLOATS(ACTIVATION)
