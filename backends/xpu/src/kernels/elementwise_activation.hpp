// Activation functions. What some take beside x comes as a second input.
#include "kernels/common/elementwise.hpp"

#define ACTIVATION(suffix, T)                                           \
  XPU_UNARY(relu_##suffix, fn::Relu, T, T)                              \
  XPU_BINARY(leaky_relu_##suffix, fn::LeakyRelu, T, T, xpu::Compute<T>) \
  XPU_BINARY(elu_##suffix, fn::Elu, T, T, xpu::Compute<T>)              \
  XPU_UNARY(selu_##suffix, fn::Selu, T, T)                              \
  XPU_BINARY(softplus_##suffix, fn::Softplus, T, T, xpu::Compute<T>)    \
  XPU_UNARY(logsigmoid_##suffix, fn::Logsigmoid, T, T)                  \
  XPU_UNARY(hardsigmoid_##suffix, fn::Hardsigmoid, T, T)                \
  XPU_UNARY(hardswish_##suffix, fn::Hardswish, T, T)                    \
  XPU_UNARY(sigmoid_##suffix, fn::Sigmoid, T, T)                        \
  XPU_UNARY(silu_##suffix, fn::Silu, T, T)                              \
  XPU_UNARY(mish_##suffix, fn::Mish, T, T)                              \
  XPU_UNARY(gelu_##suffix, fn::Gelu, T, T)                              \
  XPU_UNARY(gelu_tanh_##suffix, fn::GeluTanh, T, T)
XPU_FLOATS(ACTIVATION)
