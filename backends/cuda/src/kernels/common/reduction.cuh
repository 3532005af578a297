// Reductions of lines to one result each. An operation R has
//   Input, Output       element types in memory
//   Value               what terms are joined to: a plain struct or number
//   nothing()           of no terms
//   add(value, x, i)    with the line's element i, which the line has in its order
//   join(a, b)
//   result(value, how)  what is stored
#pragma once
#include "kernels/common/lines.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
// One part of a line. What it comes to goes to `out` or, of several parts, to `partial`.
template <class R, class Team>
__device__ __forceinline__ void reduce(const Team& team, const Place& place, const Part& part,
                                       const typename R::Input* x, typename R::Value* partial,
                                       typename R::Output* out, const Lines& how) {
  auto value = R::nothing();
  for_each_value(team, how, part, x + place.at[0],
                 [&](uint64_t i, typename R::Input element) { R::add(value, element, i); });
  value = team.template join<R>(value);
  if (team.lane != 0 || !part.exists) return;
  if (how.parts.value > 1) partial[uint64_t(place.at[1]) * how.parts.value + part.index] = value;
  else out[place.at[1]] = R::result(value, how);
}
template <class R>
__device__ __forceinline__ void reduce_lines(const typename R::Input* x, typename R::Value* partial,
                                             typename R::Output* out, const Lines& how) {
  for_each_line(how, [&](const Row& team, uint64_t, const Place& place, const Part& part) {
    reduce<R>(team, place, part, x, partial, out, how);
  });
}
template <class R>
__device__ __forceinline__ void reduce_columns(const typename R::Input* x, typename R::Value* partial,
                                               typename R::Output* out, const Lines& how) {
  for_each_column(how, [&](const Column& team, uint64_t, const Place& place, const Part& part) {
    reduce<R>(team, place, part, x, partial, out, how);
  });
}

// The parts of each line joined, by a warp.
template <class R>
__device__ __forceinline__ void reduce_parts(const typename R::Value* partial, typename R::Output* out,
                                             const Lines& how) {
  const Row warp(warp_size);
  const uint64_t warps = blockDim.x / warp_size;
  for (uint64_t line = blockIdx.x * warps + threadIdx.x / warp_size; line < how.count; line += gridDim.x * warps) {
    auto value = R::nothing();
    for (uint64_t p = warp.lane; p < how.parts.value; p += warp_size)
      value = R::join(value, partial[line * how.parts.value + p]);
    value = warp.template join<R>(value);
    if (warp.lane == 0) out[line] = R::result(value, how);
  }
}
}  // namespace gpu
#endif

// Kernels <name>_lines_<suffix>, _columns_ and _parts_ of operation R.
#define GPU_REDUCTION(name, suffix, R)                                                          \
  KERNEL(256, name##_lines_##suffix)                                                            \
  (const R::Input* x, R::Value* partial, R::Output* out, gpu::Lines how) {                      \
    gpu::reduce_lines<R>(x, partial, out, how);                                                 \
  }                                                                                             \
  KERNEL(256, name##_columns_##suffix)                                                          \
  (const R::Input* x, R::Value* partial, R::Output* out, gpu::Lines how) {                      \
    gpu::reduce_columns<R>(x, partial, out, how);                                               \
  }                                                                                             \
  KERNEL(256, name##_parts_##suffix)(const R::Value* partial, R::Output* out, gpu::Lines how) { \
    gpu::reduce_parts<R>(partial, out, how);                                                    \
  }
