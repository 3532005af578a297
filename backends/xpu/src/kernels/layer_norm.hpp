// layer_norm, rms_norm over the last axes, in two passes: the mean, then the mean square of what is left.
#include "kernels/common/rows.hpp"
#include "kernels/common/types.hpp"

namespace {
template <class T, bool centred>
void normalize(const T* x, const T* weight, const T* bias, T* out, uint64_t rows, uint64_t n, gpu::Compute<T> eps) {
  using C = gpu::Compute<T>;
  using Sum = dvt::CompensatedSum<C>;
  const gpu::Group group;
  for (uint64_t row = group.item.get_group(0); row < rows; row += group.item.get_group_range(0)) {
    const T* const from = x + row * n;
    T* const to = out + row * n;
    C mean = 0;
    if constexpr (centred) {
      auto sum = Sum::nothing();
      gpu::for_each_index(group, 0, n, [&](size_t i) { sum.add(C(from[i])); });
      mean = group.template join<Sum>(sum).total() / C(n);
    }
    auto squares = Sum::nothing();
    gpu::for_each_index(group, 0, n, [&](size_t i) {
      const C d = C(from[i]) - mean;
      squares.add(d * d);
    });
    const C scale = 1 / sycl::sqrt(group.template join<Sum>(squares).total() / C(n) + eps);
    gpu::for_each_index(group, 0, n, [&](size_t i) {
      C y = (C(from[i]) - mean) * scale;
      if (weight) y *= C(weight[i]);
      if (bias) y += C(bias[i]);
      to[i] = T(y);
    });
  }
}
}  // namespace

#define NORM(suffix, T)                                                                                         \
  KERNEL(1, layer_norm_##suffix)(const T* x, const T* weight, const T* bias, T* out, uint64_t rows, uint64_t n, \
                                 gpu::Compute<T> eps) {                                                         \
    normalize<T, true>(x, weight, bias, out, rows, n, eps);                                                     \
  }                                                                                                             \
  KERNEL(1, rms_norm_##suffix)(const T* x, const T* weight, T* out, uint64_t rows, uint64_t n,                  \
                               gpu::Compute<T> eps) {                                                           \
    normalize<T, false>(x, weight, nullptr, out, rows, n, eps);                                                 \
  }
DVT_FLOATS(NORM)
