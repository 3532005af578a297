// out = f(x...) element by element: one kernel over a single contiguous row, and one over any rows.
#pragma once
#include <tuple>
#include <utility>

#include "dovetail/functors.hpp"
#include "gpu/kernels/shared/operand.hpp"

namespace fn = dvt::functors;

namespace gpu {
// The first element of a row in each operand. Every index is a constant: a kernel's argument that is indexed
// otherwise is copied for each work item.
template <int inputs>
struct Offsets {
  int64_t at[inputs + 1] = {};

  [[gnu::always_inline]] Offsets(const Layout<inputs>& how, uint32_t row)
      : Offsets(how, row, std::make_integer_sequence<int, max_axes - 1>(),
                std::make_integer_sequence<int, inputs + 1>()) {}

 private:
  template <int... axis, int... k>
  [[gnu::always_inline]] Offsets(const Layout<inputs>& how, uint32_t row, std::integer_sequence<int, axis...>,
                                 std::integer_sequence<int, k...>) {
    const auto add = [&](const Divisor& size, const int64_t (&stride)[inputs + 1]) __attribute__((always_inline)) {
      const uint32_t rest = size.quotient(row), here = row - rest * size.size;
      ((at[k] += int64_t(here) * stride[k]), ...);
      row = rest;
      return true;
    };
    (void)((uint32_t(axis) < how.axes && add(how.size[axis], how.stride[axis])) && ...);
  }
};

// In the type that f computes with. `contiguous` is a constant: without it compilers for CPUs make no vectors.
template <bool contiguous, class T>
struct Input : Operand<T> {
  using Operand<T>::Operand, Operand<T>::data, Operand<T>::step, Operand<T>::varies, Operand<T>::value;

  Compute<T> operator[](size_t column) const {
    return Compute<T>(varies ? data[contiguous ? int64_t(column) : int64_t(column) * step] : value);
  }
};

template <class F, bool contiguous, class Out, class... In, int... k>
[[gnu::always_inline]] inline void apply_row(const Layout<sizeof...(In)>& how,
                                             const int64_t (&at)[sizeof...(In) + 1], Out* out,
                                             std::integer_sequence<int, k...>, const In*... in) {
  constexpr int last = sizeof...(In);
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<2>();
  const auto inputs = std::tuple(Input<contiguous, In>(k, in, how, at[k])...);
  Out* const to = out + at[last];
  const int64_t step = contiguous ? 1 : how.step[last];
  const size_t tile = item.get_group(1) * how.tile, end = sycl::min(tile + how.tile, size_t(how.columns));
  for (size_t column = tile + item.get_local_id(1); column < end; column += item.get_local_range(1))
    to[int64_t(column) * step] = Out(F()(std::get<k>(inputs)[column]...));
}

// One contiguous row needs no offsets, which cost CPUs more than the rest.
template <class F, class Out, class... In>
void apply_dense(const Layout<sizeof...(In)>& how, Out* out, const In*... in) {
  constexpr int64_t begin[sizeof...(In) + 1] = {};
  apply_row<F, true>(how, begin, out, std::make_integer_sequence<int, sizeof...(In)>(), in...);
}
template <class F, class Out, class... In>
void apply_strided(const Layout<sizeof...(In)>& how, Out* out, const In*... in) {
  constexpr std::make_integer_sequence<int, sizeof...(In)> all;
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<2>();
  for (size_t row = item.get_global_id(0); row < how.rows; row += item.get_global_range(0)) {
    const Offsets<sizeof...(In)> offsets(how, uint32_t(row));
    if (how.contiguous) apply_row<F, true>(how, offsets.at, out, all, in...);
    else apply_row<F, false>(how, offsets.at, out, all, in...);
  }
}
}  // namespace gpu

// Kernels `name`, over one row that is contiguous in every operand, and `name`_strided.
#define GPU_UNARY(name, F, Out, A)                                                                \
  KERNEL(2, name)(const A* a, Out* out, gpu::Layout<1> how) { gpu::apply_dense<F>(how, out, a); } \
  KERNEL(2, name##_strided)(const A* a, Out* out, gpu::Layout<1> how) { gpu::apply_strided<F>(how, out, a); }
#define GPU_BINARY(name, F, Out, A, B)                                                                           \
  KERNEL(2, name)(const A* a, const B* b, Out* out, gpu::Layout<2> how) { gpu::apply_dense<F>(how, out, a, b); } \
  KERNEL(2, name##_strided)(const A* a, const B* b, Out* out, gpu::Layout<2> how) {                              \
    gpu::apply_strided<F>(how, out, a, b);                                                                       \
  }
#define GPU_TERNARY(name, F, Out, A, B, C)                                                      \
  KERNEL(2, name)(const A* a, const B* b, const C* c, Out* out, gpu::Layout<3> how) {           \
    gpu::apply_dense<F>(how, out, a, b, c);                                                     \
  }                                                                                             \
  KERNEL(2, name##_strided)(const A* a, const B* b, const C* c, Out* out, gpu::Layout<3> how) { \
    gpu::apply_strided<F>(how, out, a, b, c);                                                   \
  }
