// out = f(x...) element by element: one kernel over a single contiguous row, 16 bytes at a time, and one over any
// rows.
#pragma once
#include <utility>

#include "gpu/kernels/shared/operand.hpp"

#if !defined(GPU_LIST_KERNELS)
#include "dovetail/functors.hpp"

namespace fn = dvt::functors;

namespace gpu {
template <class T>
struct Input : Operand<T> {
  using Operand<T>::Operand, Operand<T>::data, Operand<T>::varies, Operand<T>::value;

  __device__ __forceinline__ Compute<T> at(int64_t offset) const {
    return Compute<T>(varies ? data[offset] : value);
  }
  template <int n>
  __device__ __forceinline__ Pack<T, n> pack(uint64_t i) const {
    Pack<T, n> p;
    if (varies) return reinterpret_cast<const Pack<T, n>*>(data)[i];
#pragma unroll
    for (int j = 0; j < n; ++j) p.at[j] = value;
    return p;
  }
  template <int n>
  __device__ __forceinline__ bool is_aligned() const {
    return !varies || reinterpret_cast<uintptr_t>(data) % sizeof(Pack<T, n>) == 0;
  }
};

// F of one element. A long functor is called for float64, where a call costs little in comparison: inlined, its
// code would be repeated for each element of a pack.
template <class F, class... T>
__device__ __attribute__((noinline)) auto call(T... x) {
  return F()(x...);
}
template <class F, class... T>
__device__ __forceinline__ auto apply(T... x) {
  if constexpr (std::is_base_of_v<fn::Long, F> && (std::is_same_v<T, double> || ...)) return call<F>(x...);
  else return F()(x...);
}

template <class F, int n, class Out, class... In>
__device__ __forceinline__ void apply_packs(uint64_t packs, Out* out, const Input<In>&... in) {
  for_each_item(packs, [&](uint64_t i) {
    const auto one = [&](int j, const Pack<In, n>&... x) { return Out(apply<F>(Compute<In>(x.at[j])...)); };
    const auto all = [&](const Pack<In, n>&... x) {
      Pack<Out, n> y;
#pragma unroll
      for (int j = 0; j < n; ++j) y.at[j] = one(j, x...);
      return y;
    };
    reinterpret_cast<Pack<Out, n>*>(out)[i] = all(in.template pack<n>(i)...);
  });
}

// Elements in a pack of the output and the inputs. With many types the widest packs exceed the registers.
template <class... T>
constexpr int pack_size() {
  size_t widest = 1;
  ((widest = sizeof(T) > widest ? sizeof(T) : widest), ...);
  const int n = pack_bytes / int(widest);
  return sizeof...(T) > 3 && n > 4 ? n / 2 : n;
}

template <class F, class Out, class... In>
__device__ __forceinline__ void apply_contiguous_row(uint64_t columns, Out* out, const Input<In>&... in) {
  constexpr int n = pack_size<Out, In...>();
  const bool aligned =
      reinterpret_cast<uintptr_t>(out) % sizeof(Pack<Out, n>) == 0 && (in.template is_aligned<n>() && ...);
  const uint64_t packs = aligned ? columns / n : 0, packed = packs * n;
  if (packs) apply_packs<F, n>(packs, out, in...);
  for_each_item(columns - packed,
                [&](uint64_t i) { out[packed + i] = Out(apply<F>(in.at(int64_t(packed + i))...)); });
}

template <class F, class Out, class... In, int... k>
__device__ __forceinline__ void apply_dense(const Layout<sizeof...(In)>& how, std::integer_sequence<int, k...>,
                                            Out* out, const In*... in) {
  apply_contiguous_row<F>(how.columns, out, Input<In>(k, in, how, 0)...);
}

// The first element of a row in each operand. Every index is a constant: a parameter that is indexed otherwise is
// copied for each thread.
template <int inputs>
struct Offsets {
  int64_t at[inputs + 1] = {};

  __device__ __forceinline__ Offsets(const Layout<inputs>& how, uint32_t row) {
#pragma unroll
    for (int axis = 0; axis < max_axes - 1; ++axis) {
      if (uint32_t(axis) >= how.axes) break;
      const uint32_t rest = how.size[axis].quotient(row), here = row - rest * how.size[axis].size;
#pragma unroll
      for (int k = 0; k <= inputs; ++k) at[k] += int64_t(here) * how.stride[axis][k];
      row = rest;
    }
  }
};

// Threads along x take columns, those along y rows.
template <class F, class Out, class... In, int... k>
__device__ __forceinline__ void apply_strided(const Layout<sizeof...(In)>& how, std::integer_sequence<int, k...>,
                                              Out* out, const In*... in) {
  constexpr int last = sizeof...(In);
  for (uint32_t row = blockIdx.y * blockDim.y + threadIdx.y; row < how.rows; row += gridDim.y * blockDim.y) {
    const Offsets<last> offsets(how, row);
    Out* const to = out + offsets.at[last];
    const auto each = [&](const Input<In>&... x) {
      for (uint64_t column = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; column < how.columns;
           column += uint64_t(gridDim.x) * blockDim.x)
        to[int64_t(column) * how.step[last]] = Out(apply<F>(x.at(int64_t(column) * x.step)...));
    };
    each(Input<In>(k, in, how, offsets.at[k])...);
  }
}
}  // namespace gpu
#endif

// Kernels `name`, over one row that is contiguous in every operand, and `name`_strided.
#define GPU_UNARY(name, F, Out, A)                                        \
  KERNEL(256, name)(const A* a, Out* out, gpu::Layout<1> how) {           \
    gpu::apply_dense<F>(how, std::integer_sequence<int, 0>(), out, a);    \
  }                                                                       \
  KERNEL(256, name##_strided)(const A* a, Out* out, gpu::Layout<1> how) { \
    gpu::apply_strided<F>(how, std::integer_sequence<int, 0>(), out, a);  \
  }
#define GPU_BINARY(name, F, Out, A, B)                                                \
  KERNEL(256, name)(const A* a, const B* b, Out* out, gpu::Layout<2> how) {           \
    gpu::apply_dense<F>(how, std::integer_sequence<int, 0, 1>(), out, a, b);          \
  }                                                                                   \
  KERNEL(256, name##_strided)(const A* a, const B* b, Out* out, gpu::Layout<2> how) { \
    gpu::apply_strided<F>(how, std::integer_sequence<int, 0, 1>(), out, a, b);        \
  }
#define GPU_TERNARY(name, F, Out, A, B, C)                                                        \
  KERNEL(256, name)(const A* a, const B* b, const C* c, Out* out, gpu::Layout<3> how) {           \
    gpu::apply_dense<F>(how, std::integer_sequence<int, 0, 1, 2>(), out, a, b, c);                \
  }                                                                                               \
  KERNEL(256, name##_strided)(const A* a, const B* b, const C* c, Out* out, gpu::Layout<3> how) { \
    gpu::apply_strided<F>(how, std::integer_sequence<int, 0, 1, 2>(), out, a, b, c);              \
  }
