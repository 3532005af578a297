// Kernels over rows (ReductionPlan): which thread has which elements. It depends on shapes and strides alone, so
// that sums have an order; 16 bytes are read at once where they are aligned.
#pragma once
#include "kernels/common/axes.hpp"
#include "kernels/common/team.cuh"
#include "kernels/common/types.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
// Elements [begin, end) of a row.
struct Part {
  uint64_t index, begin, end;
  bool exists;  // without elements where it does not: its threads come to barriers nevertheless
};
__device__ __forceinline__ Part part_of(const ReductionPlan& how, uint64_t index, bool exists) {
  const uint64_t begin = index * how.part, end = begin + how.part < how.size ? begin + how.part : how.size;
  return exists ? Part{index, begin, end, true} : Part{0, 0, 0, false};
}

// body(team, row, place, part) for each part of each row, by a Row of threads.
template <class Body>
__device__ __forceinline__ void for_each_row(const ReductionPlan& how, Body body) {
  const Row team(how.threads);
  const uint64_t at_once = blockDim.x / how.threads;
  for (uint64_t first = blockIdx.x * at_once; first < how.chunks; first += gridDim.x * at_once) {
    const uint64_t chunk = first + threadIdx.x / how.threads;
    const bool exists = chunk < how.chunks;
    const uint64_t row = exists ? quotient(chunk, how.parts) : 0;
    body(team, row, locate(how.axis, 0, how.kept, row), part_of(how, chunk - row * how.parts.value, exists));
  }
}
// By a Column: consecutive rows along the last kept axis.
template <class Body>
__device__ __forceinline__ void for_each_column(const ReductionPlan& how, Body body) {
  const Column team(how.threads);
  const Axis& columns = how.axis[how.kept - 1];
  for (uint64_t chunk = blockIdx.x; chunk < how.chunks; chunk += gridDim.x) {
    const uint64_t block = quotient(chunk, how.parts), outer = quotient(block, how.blocks);
    const uint64_t column = (block - outer * how.blocks.value) * team.columns + threadIdx.x % team.columns;
    Place place = locate(how.axis, 0, how.kept - 1, outer);
    place.at[0] += int64_t(column) * columns.stride[0], place.at[1] += int64_t(column) * columns.stride[1];
    body(team, outer * columns.size.value + column, place,
         part_of(how, chunk - block * how.parts.value, column < columns.size.value));
  }
}

// Elements i to i + n of those before `end`, at once where `aligned`, and `missing` ones.
template <int n, class T>
__device__ __forceinline__ Pack<T, n> load_pack(const T* from, uint64_t i, uint64_t end, bool aligned,
                                                T missing = T()) {
  if (aligned && i + n <= end) return *reinterpret_cast<const Pack<T, n>*>(from + i);
  Pack<T, n> pack;
#pragma unroll
  for (int j = 0; j < n; ++j) pack.at[j] = i + j < end ? from[i + j] : missing;
  return pack;
}
template <int n, class T>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, n>& pack, uint64_t i, uint64_t end, bool aligned) {
  if (aligned && i + n <= end) {
    *reinterpret_cast<Pack<T, n>*>(to + i) = pack;
    return;
  }
#pragma unroll
  for (int j = 0; j < n; ++j)
    if (i + j < end) to[i + j] = pack.at[j];
}
template <class T>
inline constexpr int pack_length = pack_bytes / int(sizeof(T));
template <class T>
__device__ __forceinline__ bool is_aligned(const T* p) {
  return reinterpret_cast<uintptr_t>(p) % pack_bytes == 0;
}

inline constexpr int loads_at_once = 4;  // of a thread: memory answers late

template <int loads = loads_at_once, class Team, class T, class Body>
__device__ __forceinline__ void for_each_packed(const Team& team, const Part& part, const T* from, Body body) {
  constexpr int n = pack_length<T>;
  const bool aligned = is_aligned(from);
  const uint64_t step = uint64_t(team.width) * n;
  uint64_t i = part.begin + team.lane * n;
  for (; aligned && i + (loads - 1) * step + n <= part.end; i += loads * step) {
    Pack<T, n> pack[loads];
#pragma unroll
    for (int k = 0; k < loads; ++k) pack[k] = *reinterpret_cast<const Pack<T, n>*>(from + i + k * step);
#pragma unroll
    for (int k = 0; k < loads; ++k)
#pragma unroll
      for (int j = 0; j < n; ++j) body(i + k * step + j, pack[k].at[j]);
  }
  for (; i < part.end; i += step) {
    const Pack<T, n> pack = load_pack<n>(from, i, part.end, aligned);
#pragma unroll
    for (int j = 0; j < n; ++j)
      if (i + j < part.end) body(i + j, pack.at[j]);
  }
}
template <int loads = loads_at_once, class Team, class T, class Body>
__device__ __forceinline__ void for_each_apart(const Team& team, const Part& part, const T* from, int64_t stride,
                                               Body body) {
  uint64_t i = part.begin + team.lane;
  for (; i + (loads - 1) * team.width < part.end; i += loads * team.width) {
    T x[loads];
#pragma unroll
    for (int k = 0; k < loads; ++k) x[k] = from[int64_t(i + k * team.width) * stride];
#pragma unroll
    for (int k = 0; k < loads; ++k) body(i + k * team.width, x[k]);
  }
  for (; i < part.end; i += team.width) body(i, from[int64_t(i) * stride]);
}

// body(i, x) for this thread's elements of a part of operand 0, i ascending; `from` is where the row begins.
template <int loads = loads_at_once, class T, class Body>
__device__ __forceinline__ void for_each_value(const Row& team, const ReductionPlan& how, const Part& part,
                                               const T* from, Body body) {
  const Axis& axis = how.axis[how.kept];
  if (how.along > 1) {
    for (uint64_t i = part.begin + team.lane; i < part.end; i += team.width)
      body(i, from[locate(how.axis, how.kept, how.kept + how.along, i).at[0]]);
  } else if (axis.stride[0] == 1) for_each_packed<loads>(team, part, from, body);
  else for_each_apart<loads>(team, part, from, axis.stride[0], body);
}
template <int loads = loads_at_once, class T, class Body>
__device__ __forceinline__ void for_each_value(const Column& team, const ReductionPlan& how, const Part& part,
                                               const T* from, Body body) {
  if (how.along > 1) {
    for (uint64_t i = part.begin + team.lane; i < part.end; i += team.width)
      body(i, from[locate(how.axis, how.kept, how.kept + how.along, i).at[0]]);
  } else for_each_apart<loads>(team, part, from, how.axis[how.kept].stride[0], body);
}
}  // namespace gpu
#endif
