// out = f(x...) element by element: for each kernel one over rows without gaps, and one over any strides.
#pragma once
#include "kernels/common/layout.hpp"
#include "kernels/common/types.hpp"

namespace xpu {
template <class T>
T value_of(const Scalar& scalar) {
  T value;
  __builtin_memcpy(&value, &scalar, sizeof value);
  return value;
}

// An input, read as f wants it.
template <class T>
struct Input {
  const T* data;
  bool moves;
  T value;

  template <int inputs>
  Input(const T* x, const Dense<inputs>& how, int i)
      : data(x), moves(how.moves >> i & 1), value(x && !moves ? *x : value_of<T>(how.value[i])) {}
  template <int inputs>
  Input(const T* x, const Strided<inputs>& how, int i) : data(x), moves(x), value(value_of<T>(how.value[i])) {}
  Compute<T> operator[](size_t i) const { return Compute<T>(moves ? data[i] : value); }
};

// Where element i lies in each operand.
template <int operands>
struct Offsets {
  int64_t at[operands] = {};

  template <int inputs>
  Offsets(const Strided<inputs>& how, uint32_t i) {
    for (int axis = int(how.axes) - 1; axis >= 0; --axis) {
      const uint32_t rest = i / how.size[axis], here = i - rest * how.size[axis];
      for (int k = 0; k < operands; ++k) at[k] += here * how.stride[k][axis];
      i = rest;
    }
  }
};

template <class F, class Out, class A>
void apply(const Dense<1>& how, Out* out, const A* a) {
  const Input<A> x(a, how, 0);
  for_each_item(how.n, [=](size_t i) { out[i] = Out(F()(x[i])); });
}
template <class F, class Out, class A, class B>
void apply(const Dense<2>& how, Out* out, const A* a, const B* b) {
  const Input<A> x(a, how, 0);
  const Input<B> y(b, how, 1);
  for_each_item(how.n, [=](size_t i) { out[i] = Out(F()(x[i], y[i])); });
}
template <class F, class Out, class A, class B, class C>
void apply(const Dense<3>& how, Out* out, const A* a, const B* b, const C* c) {
  const Input<A> x(a, how, 0);
  const Input<B> y(b, how, 1);
  const Input<C> z(c, how, 2);
  for_each_item(how.n, [=](size_t i) { out[i] = Out(F()(x[i], y[i], z[i])); });
}

template <class F, class Out, class A>
void apply(const Strided<1>& how, Out* out, const A* a) {
  const Input<A> x(a, how, 0);
  for_each_item(how.n, [&](size_t i) {
    const Offsets<2> o(how, uint32_t(i));
    out[o.at[1]] = Out(F()(x[o.at[0]]));
  });
}
template <class F, class Out, class A, class B>
void apply(const Strided<2>& how, Out* out, const A* a, const B* b) {
  const Input<A> x(a, how, 0);
  const Input<B> y(b, how, 1);
  for_each_item(how.n, [&](size_t i) {
    const Offsets<3> o(how, uint32_t(i));
    out[o.at[2]] = Out(F()(x[o.at[0]], y[o.at[1]]));
  });
}
template <class F, class Out, class A, class B, class C>
void apply(const Strided<3>& how, Out* out, const A* a, const B* b, const C* c) {
  const Input<A> x(a, how, 0);
  const Input<B> y(b, how, 1);
  const Input<C> z(c, how, 2);
  for_each_item(how.n, [&](size_t i) {
    const Offsets<4> o(how, uint32_t(i));
    out[o.at[3]] = Out(F()(x[o.at[0]], y[o.at[1]], z[o.at[2]]));
  });
}
}  // namespace xpu

// Kernels name and name_strided.
#define XPU_UNARY(name, F, Out, A)                                                         \
  KERNEL(1, name)(const A* a, Out* out, xpu::Dense<1> how) { xpu::apply<F>(how, out, a); } \
  KERNEL(1, name##_strided)(const A* a, Out* out, xpu::Strided<1> how) { xpu::apply<F>(how, out, a); }
#define XPU_BINARY(name, F, Out, A, B)                                                                    \
  KERNEL(1, name)(const A* a, const B* b, Out* out, xpu::Dense<2> how) { xpu::apply<F>(how, out, a, b); } \
  KERNEL(1, name##_strided)(const A* a, const B* b, Out* out, xpu::Strided<2> how) {                      \
    xpu::apply<F>(how, out, a, b);                                                                        \
  }
#define XPU_TERNARY(name, F, Out, A, B, C)                                                       \
  KERNEL(1, name)(const A* a, const B* b, const C* c, Out* out, xpu::Dense<3> how) {             \
    xpu::apply<F>(how, out, a, b, c);                                                            \
  }                                                                                              \
  KERNEL(1, name##_strided)(const A* a, const B* b, const C* c, Out* out, xpu::Strided<3> how) { \
    xpu::apply<F>(how, out, a, b, c);                                                            \
  }
