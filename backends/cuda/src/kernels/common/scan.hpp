// Scans of rows by an operation R of gpu/kernels/shared/totals.hpp.
#pragma once
#include "kernels/common/rows.cuh"
#include "kernels/common/sum.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
template <class T>
using Total = Sum<T>;

// The start of a row's results: after an initial one, if any, which the row's first thread writes.
template <class R>
__device__ __forceinline__ typename R::Element* results_at(typename R::Element* to, int64_t stride,
                                                           const Part& part, uint32_t lane, uint32_t initial) {
  if (!initial) return to;
  if (part.exists && part.index == 0 && lane == 0) *to = R::initial();
  return to + stride;
}

// Each thread takes a pack of contiguous elements at a time. All threads of a warp take the same number of steps.
template <class R>
__device__ __forceinline__ void scan_part(const Row& team, const Part& part, uint64_t length,
                                          typename R::Value before, const typename R::Element* from, int64_t stride,
                                          typename R::Element* to, int64_t to_stride) {
  using T = typename R::Element;
  using Value = typename R::Value;
  constexpr int n = pack_length<T>;
  const bool aligned = is_aligned(from), to_aligned = is_aligned(to);
  for (uint64_t tile = 0; tile < length; tile += uint64_t(team.width) * n) {
    const uint64_t begin = part.begin + tile + team.lane * n;
    Pack<T, n> x;
    if (stride == 1) x = load_pack<n>(from, begin, part.end, aligned);
    Value sum = R::nothing();
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if (begin + j >= part.end) break;
      if (stride != 1) x.at[j] = from[int64_t(begin + j) * stride];
      R::append(sum, x.at[j]);
    }
    Value all, value = R::join(before, team.template scan<R>(sum, all));
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if (begin + j >= part.end) break;
      R::append(value, x.at[j]);
      x.at[j] = R::result(value);
      if (to_stride != 1) to[int64_t(begin + j) * to_stride] = x.at[j];
    }
    if (to_stride == 1) store_pack<n>(to, x, begin, part.end, to_aligned);
    before = R::join(before, all);
  }
}

template <class R>
__device__ __forceinline__ void scan_rows(const typename R::Element* x, const typename R::Value* partial,
                                          typename R::Element* out, const ReductionPlan& how, uint32_t initial) {
  const Axis& axis = how.axis[how.kept];
  for_each_row(how, [&](const Row& team, uint64_t row, const Place& place, const Part& part) {
    auto* const to = results_at<R>(out + place.at[1], axis.stride[1], part, team.lane, initial);
    const auto before =
        how.parts.value > 1 && part.exists ? partial[row * how.parts.value + part.index] : R::nothing();
    scan_part<R>(team, part, how.part, before, x + place.at[0], axis.stride[0], to, axis.stride[1]);
  });
}
// A row by a thread alone.
template <class R>
__device__ __forceinline__ void scan_columns(const typename R::Element* x, typename R::Element* out,
                                             const ReductionPlan& how, uint32_t initial) {
  const Axis& axis = how.axis[how.kept];
  for_each_column(how, [&](const Column& thread, uint64_t, const Place& place, const Part& row) {
    auto* const to = results_at<R>(out + place.at[1], axis.stride[1], row, 0, initial);
    auto value = R::nothing();
    for_each_apart(thread, row, x + place.at[0], axis.stride[0], [&](uint64_t i, typename R::Element element) {
      R::append(value, element);
      to[int64_t(i) * axis.stride[1]] = R::result(value);
    });
  });
}
// By a warp for each row.
template <class R>
__device__ __forceinline__ void scan_parts(typename R::Value* partial, const ReductionPlan& how) {
  const Row warp(warp_size);
  const uint64_t warps = blockDim.x / warp_size, parts = how.parts.value;
  for (uint64_t row = blockIdx.x * warps + threadIdx.x / warp_size; row < how.count; row += gridDim.x * warps) {
    auto before = R::nothing(), all = R::nothing();
    for (uint64_t first = 0; first < parts; first += warp_size, before = R::join(before, all)) {
      const uint64_t p = first + warp.lane;
      const auto here = p < parts ? partial[row * parts + p] : R::nothing();
      const auto value = R::join(before, warp.template scan<R>(here, all));
      if (p < parts) partial[row * parts + p] = value;
    }
  }
}
}  // namespace gpu
#endif

#define GPU_SCAN_TOTALS(name, suffix, R, T)  // those of parts are kernels of sum and prod
