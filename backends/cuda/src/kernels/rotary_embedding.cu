// Rotates pairs of a row's elements. A thread takes pairs whose cosines are contiguous.
#include "kernels/common/rows.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace {
using gpu::Compute;
using gpu::Pack;

template <int n, class T>
__device__ __forceinline__ Pack<T, n> read(const T* from, uint64_t i, int64_t stride) {
  if constexpr (n == 1) return {{from[int64_t(i) * stride]}};
  else return *reinterpret_cast<const Pack<T, n>*>(from + i);
}
template <int n, class T>
__device__ __forceinline__ void write(T* to, uint64_t i, const Pack<T, n>& pack) {
  *reinterpret_cast<Pack<T, n>*>(to + i) = pack;
}

// The cosines or sines of a row, `stride` elements apart.
template <class T>
struct Rotation {
  const T *cos, *sin;
  uint64_t pairs;
  int64_t stride;
};

// The pairs i to i + n.
template <int n, bool interleaved, class T>
__device__ __forceinline__ void rotate(const T* x, T* out, const Rotation<T>& by, uint64_t i) {
  using C = Compute<T>;
  const uint64_t at[2] = {interleaved ? 2 * i : i, interleaved ? 2 * i + n : by.pairs + i};
  const Pack<T, n> in[2] = {read<n>(x, at[0], by.stride), read<n>(x, at[1], by.stride)};
  const Pack<T, n> cos = read<n>(by.cos, i, 1), sin = read<n>(by.sin, i, 1);
  Pack<T, n> turned[2];
#pragma unroll
  for (int j = 0; j < n; ++j) {
    const int first = interleaved ? 2 * j : j, second = interleaved ? 2 * j + 1 : n + j;
    const C a(in[first / n].at[first % n]), b(in[second / n].at[second % n]), c(cos.at[j]), s(sin.at[j]);
    turned[first / n].at[first % n] = T(a * c - b * s);
    turned[second / n].at[second % n] = T(b * c + a * s);
  }
  write(out, at[0], turned[0]);
  write(out, at[1], turned[1]);
}

template <int n, bool interleaved, class T>
__device__ __forceinline__ void rotate_rows(const T* x, const T* cos, const T* sin, T* out,
                                            const gpu::ReductionPlan& how, uint64_t pairs) {
  const int64_t stride = how.axis[how.kept].stride[0];
  gpu::for_each_row(how, [&](const gpu::Row& team, uint64_t row, const gpu::Place& place, const gpu::Part& part) {
    const T* const from = x + place.at[0];
    T* const to = out + row * how.size;
    const Rotation<T> by{cos + place.at[1], sin + place.at[1], pairs, stride};
    if (!part.exists) return;
    for (uint64_t i = team.lane * n; i < pairs; i += team.width * n) rotate<n, interleaved>(from, to, by, i);
    for (uint64_t i = 2 * pairs + team.lane * n; i < how.size; i += team.width * n)
      write(to, i, read<n>(from, i, stride));
  });
}
}  // namespace
#endif

#define ROTARY_EMBEDDING(suffix, T)                                                                              \
  KERNEL(256, rotary_embedding_##suffix)                                                                         \
  (const T* x, const T* cos, const T* sin, T* out, gpu::ReductionPlan how, uint64_t pairs, uint32_t interleaved, \
   uint32_t packed) {                                                                                            \
    constexpr int n = gpu::pack_length<T>;                                                                       \
    if (packed && interleaved) rotate_rows<n, true>(x, cos, sin, out, how, pairs);                               \
    else if (packed) rotate_rows<n, false>(x, cos, sin, out, how, pairs);                                        \
    else if (interleaved) rotate_rows<1, true>(x, cos, sin, out, how, pairs);                                    \
    else rotate_rows<1, false>(x, cos, sin, out, how, pairs);                                                    \
  }
DVT_FLOATS(ROTARY_EMBEDDING)
