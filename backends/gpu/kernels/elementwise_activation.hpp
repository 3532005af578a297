// Activation functions. A parameter of the function is the second input.
#include "kernels/common/elementwise.hpp"

#define ACTIVATION(suffix, T)                                           \
  GPU_UNARY(relu_##suffix, fn::Relu, T, T)                              \
  GPU_BINARY(leaky_relu_##suffix, fn::LeakyRelu, T, T, dvt::Compute<T>) \
  GPU_BINARY(elu_##suffix, fn::Elu, T, T, dvt::Compute<T>)              \
  GPU_UNARY(selu_##suffix, fn::Selu, T, T)                              \
  GPU_BINARY(softplus_##suffix, fn::Softplus, T, T, dvt::Compute<T>)    \
  GPU_UNARY(logsigmoid_##suffix, fn::Logsigmoid, T, T)                  \
  GPU_UNARY(hardsigmoid_##suffix, fn::Hardsigmoid, T, T)                \
  GPU_UNARY(hardswish_##suffix, fn::Hardswish, T, T)                    \
  GPU_UNARY(sigmoid_##suffix, fn::Sigmoid, T, T)                        \
  GPU_UNARY(silu_##suffix, fn::Silu, T, T)                              \
  GPU_UNARY(mish_##suffix, fn::Mish, T, T)                              \
  GPU_UNARY(gelu_##suffix, fn::Gelu, T, T)                              \
  GPU_UNARY(gelu_tanh_##suffix, fn::GeluTanh, T, T)
DVT_FLOATS(ACTIVATION)
