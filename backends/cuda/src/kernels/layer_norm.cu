// layer_norm, rms_norm over the last axes: the mean, then the mean square of what is left. A row that fits into
// registers, in whole packs, is read once.
#include "kernels/common/register_rows.cuh"
#include "kernels/common/sum.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace {
using gpu::Compute;

template <class T>
struct Parameters {
  const T *weight, *bias;  // nullptr: none
  Compute<T> eps;
};

template <class T>
__device__ __forceinline__ Compute<T> scale_of(Compute<T> squares, uint64_t n, Compute<T> eps) {
  return 1 / sqrt(squares / Compute<T>(n) + eps);
}

template <class T, bool centred>
__device__ __forceinline__ void normalize_in_registers(const T* x, T* out, const gpu::ReductionPlan& how,
                                                       const Parameters<T>& p) {
  using C = Compute<T>;
  using Sum = gpu::Sum<T>;
  gpu::for_each_row(how, [&](const gpu::Row& team, uint64_t, const gpu::Place& place, const gpu::Part& row) {
    gpu::RegisterRow<T> values(team, row, x + place.at[0], true, 0);
    T* const to = out + place.at[1];
    if constexpr (centred) {
      auto sum = Sum::nothing();
      values.for_each([&](C element) { sum.add(element); });
      const C mean = team.template join<Sum>(sum).total() / C(how.size);
      values.for_each([&](C& element) { element -= mean; });
    }
    auto squares = Sum::nothing();
    values.for_each([&](C element) { squares.add(element * element); });
    const C scale = scale_of<T>(team.template join<Sum>(squares).total(), how.size, p.eps);
    // 1 and -0 leave everything as it is.
    values.store(to, [=](C d, C weight, C bias) { return d * scale * weight + bias; }, p.weight, p.bias, 1, -0.0f);
  });
}

template <class T, bool centred>
__device__ __forceinline__ void normalize(const T* x, T* out, const gpu::ReductionPlan& how,
                                          const Parameters<T>& p) {
  using C = Compute<T>;
  using Sum = gpu::Sum<T>;
  gpu::for_each_row(how, [&](const gpu::Row& team, uint64_t, const gpu::Place& place, const gpu::Part& row) {
    const T* const from = x + place.at[0];
    T* const to = out + place.at[1];
    constexpr int loads = 2;  // registers for more are missing
    C mean = 0;
    if constexpr (centred) {
      auto sum = Sum::nothing();
      gpu::for_each_packed<loads>(team, row, from, [&](uint64_t, T element) { sum.add(C(element)); });
      mean = team.template join<Sum>(sum).total() / C(how.size);
    }
    auto squares = Sum::nothing();
    gpu::for_each_packed<loads>(team, row, from, [&](uint64_t, T element) {
      const C d = C(element) - mean;
      squares.add(d * d);
    });
    const C scale = scale_of<T>(team.template join<Sum>(squares).total(), how.size, p.eps);
    for (uint64_t i = team.lane; i < row.end; i += team.width) {
      C y = (C(from[i]) - mean) * scale;
      if (p.weight) y *= C(p.weight[i]);
      if (p.bias) y += C(p.bias[i]);
      to[i] = T(y);
    }
  });
}
}  // namespace
#endif

#define LAYER_NORM(suffix, T)                                                                         \
  KERNEL(512, layer_norm_in_registers_##suffix)                                                       \
  (const T* x, const T* weight, const T* bias, T* out, gpu::ReductionPlan how, gpu::Compute<T> eps) { \
    normalize_in_registers<T, true>(x, out, how, {weight, bias, eps});                                \
  }                                                                                                   \
  KERNEL(512, layer_norm_rows_##suffix)                                                               \
  (const T* x, const T* weight, const T* bias, T* out, gpu::ReductionPlan how, gpu::Compute<T> eps) { \
    normalize<T, true>(x, out, how, {weight, bias, eps});                                             \
  }
DVT_FLOATS(LAYER_NORM)

#define RMS_NORM(suffix, T)                                                            \
  KERNEL(512, rms_norm_in_registers_##suffix)                                          \
  (const T* x, const T* weight, T* out, gpu::ReductionPlan how, gpu::Compute<T> eps) { \
    normalize_in_registers<T, false>(x, out, how, {weight, nullptr, eps});             \
  }                                                                                    \
  KERNEL(512, rms_norm_rows_##suffix)                                                  \
  (const T* x, const T* weight, T* out, gpu::ReductionPlan how, gpu::Compute<T> eps) { \
    normalize<T, false>(x, out, how, {weight, nullptr, eps});                          \
  }
DVT_FLOATS(RMS_NORM)
