// Windows of images joined to one result each.
#pragma once
#include "dovetail/layout.hpp"
#include "kernels/common/types.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
template <class R, class T>
__device__ __forceinline__ Compute<T> join_window(const T* plane, const dvt::Windows& how, int64_t i, int64_t j) {
  auto value = R::nothing();
  for (int64_t a = 0; a < how.h.size; ++a) {
    const int64_t y = how.h.place(i, a);
    if (!how.h.holds(y)) continue;
    auto line = R::nothing();  // a part of its own: a sum over a large window loses less
    for (int64_t b = 0; b < how.w.size; ++b) {
      const int64_t x = how.w.place(j, b);
      if (how.w.holds(x)) line = R::join(line, Compute<T>(plane[y * how.h.stride + x * how.w.stride]));
    }
    value = R::join(value, line);
  }
  return value;
}

// Results joined by R::join and finished by done(value, row, column). Threads along x take columns, along y rows,
// blocks along z channels of all images.
template <class R, class T>
__device__ __forceinline__ void pool(const T* x, T* out, const dvt::Windows& how, const R& done) {
  const int64_t planes = how.images * how.channels;
  const int64_t i_step = int64_t(gridDim.y) * blockDim.y, j_step = int64_t(gridDim.x) * blockDim.x;
  int64_t image = 0, channel = blockIdx.z;
  for (int64_t plane = blockIdx.z; plane < planes; plane += gridDim.z, channel += gridDim.z) {
    for (; channel >= how.channels; channel -= how.channels) ++image;
    const T* const from = x + image * how.image_stride + channel * how.channel_stride;
    for (int64_t i = int64_t(blockIdx.y) * blockDim.y + threadIdx.y; i < how.h.out; i += i_step)
      for (int64_t j = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; j < how.w.out; j += j_step)
        out[(plane * how.h.out + i) * how.w.out + j] = T(done(join_window<R, T>(from, how, i, j), i, j));
  }
}
}  // namespace gpu
#endif
