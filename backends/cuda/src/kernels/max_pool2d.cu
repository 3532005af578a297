// max_pool2d, avg_pool2d: a thread for each result. Padding never wins a maximum; NaN does.
#include "dovetail/layout.hpp"
#include "kernels/common/types.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace {
template <class T>
struct Largest {
  using C = gpu::Compute<T>;
  static __device__ __forceinline__ C nothing() {
    if constexpr (std::is_floating_point_v<C>) return -__builtin_inff();
    else if constexpr (std::is_unsigned_v<C>) return 0;
    else return C(uint64_t(1) << (8 * sizeof(C) - 1));
  }
  static __device__ __forceinline__ C join(C a, C b) { return b > a || b != b ? b : a; }
};
template <class T>
struct Total {
  using C = gpu::Compute<T>;
  static __device__ __forceinline__ C nothing() { return 0; }
  static __device__ __forceinline__ C join(C a, C b) { return a + b; }
};

template <class R, class T>
__device__ __forceinline__ gpu::Compute<T> join_window(const T* plane, const dvt::Windows& how, int64_t i,
                                                       int64_t j) {
  auto value = R::nothing();
  for (int64_t a = 0; a < how.h.size; ++a) {
    const int64_t y = how.h.place(i, a);
    if (!how.h.holds(y)) continue;
    auto line = R::nothing();  // a part of its own: a sum over a large window loses less
    for (int64_t b = 0; b < how.w.size; ++b) {
      const int64_t x = how.w.place(j, b);
      if (how.w.holds(x)) line = R::join(line, gpu::Compute<T>(plane[y * how.h.stride + x * how.w.stride]));
    }
    value = R::join(value, line);
  }
  return value;
}

// Results finished by done(value, row, column). Threads along x take columns, along y rows, blocks along z channels
// of all images.
template <class R, class T, class F>
__device__ __forceinline__ void pool(const T* x, T* out, const dvt::Windows& how, F done) {
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

template <class C>
__device__ __forceinline__ C places(const dvt::WindowAxis& axis, int64_t o) {  // of its window that are no padding
  int64_t n = 0;
  for (int64_t tap = 0; tap < axis.size; ++tap) n += axis.holds(axis.place(o, tap));
  return C(n);
}

template <class T>
__device__ __forceinline__ void average(const T* x, T* out, const dvt::Windows& how, bool with_padding) {
  using C = gpu::Compute<T>;
  pool<Total<T>>(x, out, how, [&](C total, int64_t i, int64_t j) {
    return total / (with_padding ? C(how.h.size * how.w.size) : places<C>(how.h, i) * places<C>(how.w, j));
  });
}
}  // namespace
#endif

#define MAX_POOL(suffix, T)                                                                       \
  KERNEL(256, max_pool_##suffix)(const T* x, T* out, dvt::Windows how) {                          \
    pool<Largest<T>>(x, out, how, [](gpu::Compute<T> value, int64_t, int64_t) { return value; }); \
  }
DVT_NUMBERS(MAX_POOL)
#define AVG_POOL(suffix, T)                                                                     \
  KERNEL(256, avg_pool_##suffix)(const T* x, T* out, dvt::Windows how, uint32_t with_padding) { \
    average(x, out, how, with_padding);                                                         \
  }
DVT_FLOATS(AVG_POOL)
