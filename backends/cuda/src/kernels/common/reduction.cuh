// Reductions of rows to one result each. An operation R has
//   Input, Output                element types in memory
//   Value                        what terms are joined to: a plain struct or number
//   nothing()                    of no terms
//   add(value, x, i, variant)    with the row's element i; each thread has those before before
//   join(a, b)
//   result(value, how, variant)  what is stored
#pragma once
#include "kernels/common/reduction.hpp"
#include "kernels/common/rows.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
template <class T>
__device__ __forceinline__ T flipped(T x, const Variant& variant) {
  if constexpr (is_narrow<T>) return x.bits = uint16_t(x.bits ^ variant.flip), x;
  else if constexpr (std::is_same_v<T, float>)
    return bit_cast<float>(bit_cast<uint32_t>(x) ^ uint32_t(variant.flip));
  else if constexpr (std::is_same_v<T, double>) return bit_cast<double>(bit_cast<uint64_t>(x) ^ variant.flip);
  else return T(x ^ variant.flip);
}

// One part of a row. What it comes to goes to `out` or, of several parts, to `partial`.
template <class R, class Team>
__device__ __forceinline__ void reduce(const Team& team, const Place& place, const Part& part,
                                       const typename R::Input* x, typename R::Value* partial,
                                       typename R::Output* out, const ReductionPlan& how, const Variant& variant) {
  auto value = R::nothing();
  for_each_value(team, how, part, x + place.at[0],
                 [&](uint64_t i, typename R::Input element) { R::add(value, element, i, variant); });
  value = team.template join<R>(value);
  if (team.lane != 0 || !part.exists) return;
  if (how.parts.value > 1) partial[uint64_t(place.at[1]) * how.parts.value + part.index] = value;
  else out[place.at[1]] = R::result(value, how, variant);
}
template <class R>
__device__ __forceinline__ void reduce_rows(const typename R::Input* x, typename R::Value* partial,
                                            typename R::Output* out, const ReductionPlan& how,
                                            const Variant& variant) {
  for_each_row(how, [&](const Row& team, uint64_t, const Place& place, const Part& part) {
    reduce<R>(team, place, part, x, partial, out, how, variant);
  });
}
template <class R>
__device__ __forceinline__ void reduce_columns(const typename R::Input* x, typename R::Value* partial,
                                               typename R::Output* out, const ReductionPlan& how,
                                               const Variant& variant) {
  for_each_column(how, [&](const Column& team, uint64_t, const Place& place, const Part& part) {
    reduce<R>(team, place, part, x, partial, out, how, variant);
  });
}

// The parts of each row joined, by a warp.
template <class R>
__device__ __forceinline__ void reduce_parts(const typename R::Value* partial, typename R::Output* out,
                                             const ReductionPlan& how, const Variant& variant) {
  const Row warp(warp_size);
  const uint64_t warps = blockDim.x / warp_size;
  for (uint64_t row = blockIdx.x * warps + threadIdx.x / warp_size; row < how.count; row += gridDim.x * warps) {
    auto value = R::nothing();
    for (uint64_t p = warp.lane; p < how.parts.value; p += warp_size)
      value = R::join(value, partial[row * how.parts.value + p]);
    value = warp.template join<R>(value);
    if (warp.lane == 0) out[row] = R::result(value, how, variant);
  }
}
}  // namespace gpu
#endif

// Kernels <name>_rows_<suffix>, _columns_ and _parts_ of operation R.
#define GPU_REDUCTION(name, suffix, R)                                                                   \
  KERNEL(256, name##_rows_##suffix)                                                                      \
  (const R::Input* x, R::Value* partial, R::Output* out, gpu::ReductionPlan how, gpu::Variant variant) { \
    gpu::reduce_rows<R>(x, partial, out, how, variant);                                                  \
  }                                                                                                      \
  KERNEL(256, name##_columns_##suffix)                                                                   \
  (const R::Input* x, R::Value* partial, R::Output* out, gpu::ReductionPlan how, gpu::Variant variant) { \
    gpu::reduce_columns<R>(x, partial, out, how, variant);                                               \
  }                                                                                                      \
  KERNEL(256, name##_parts_##suffix)                                                                     \
  (const R::Value* partial, R::Output* out, gpu::ReductionPlan how, gpu::Variant variant) {              \
    gpu::reduce_parts<R>(partial, out, how, variant);                                                    \
  }
