// Trigonometric functions.
#include "kernels/common/elementwise.hpp"
#include "kernels/common/trigonometry.hpp"

namespace {
struct Sin {
  template <class T>
  T operator()(T x) const {
    return xpu::math::sin(x);
  }
};
struct Cos {
  template <class T>
  T operator()(T x) const {
    return xpu::math::cos(x);
  }
};
}  // namespace

#define TRIGONOMETRY(suffix, T)      \
  XPU_UNARY(sin_##suffix, Sin, T, T) \
  XPU_UNARY(cos_##suffix, Cos, T, T)
XPU_FLOATS(TRIGONOMETRY)
