// layer_norm, rms_norm over the last axes, in two passes: the mean, then the mean square of what is left.
#include "kernels/common/lines.hpp"
#include "kernels/common/sum.hpp"
#include "kernels/common/types.hpp"

namespace {
template <class T, bool centred>
void normalize(const T* x, const T* weight, const T* bias, T* out, const xpu::Lines& how, xpu::Compute<T> eps) {
  using C = xpu::Compute<T>;
  using Sum = xpu::Sum<C>;
  xpu::for_each_line(how, [&](const xpu::Group& group, uint64_t, const xpu::Place& place, const xpu::Part&) {
    const T* from = x + place.at[0];
    T* to = out + place.at[1];
    const size_t n = how.size;
    C mean = 0;
    if constexpr (centred) {
      auto sum = Sum::nothing();
      xpu::for_each_index(group, 0, n, [&](size_t i) { sum.add(C(from[i])); });
      mean = group.template join<Sum>(sum).total() / C(n);
    }
    auto squares = Sum::nothing();
    xpu::for_each_index(group, 0, n, [&](size_t i) {
      const C d = C(from[i]) - mean;
      squares.add(d * d);
    });
    const C scale = 1 / sycl::sqrt(group.template join<Sum>(squares).total() / C(n) + eps);
    xpu::for_each_index(group, 0, n, [&](size_t i) {
      C y = (C(from[i]) - mean) * scale;
      if (weight) y *= C(weight[i]);
      if (bias) y += C(bias[i]);
      to[i] = T(y);
    });
  });
}
}  // namespace

#define NORM(suffix, T)                                                                                    \
  KERNEL(1, layer_norm_##suffix)(const T* x, const T* weight, const T* bias, T* out, xpu::Lines how,       \
                                 xpu::Compute<T> eps) {                                                    \
    normalize<T, true>(x, weight, bias, out, how, eps);                                                    \
  }                                                                                                        \
  KERNEL(1, rms_norm_##suffix)(const T* x, const T* weight, T* out, xpu::Lines how, xpu::Compute<T> eps) { \
    normalize<T, false>(x, weight, nullptr, out, how, eps);                                                \
  }
XPU_FLOATS(NORM)
