// The slices along one axis that indices name. Threads along x take elements of a slice, those along y slices.
#include "gpu/kernels/shared/slices.hpp"
#include "kernels/common/raise.cuh"
#include "kernels/common/rows.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace {
template <class T>
__device__ __forceinline__ void take(const T* x, const int64_t* indices, T* out, const gpu::Slices& how,
                                     gpu::Fault* fault) {
  const uint64_t slices = gpu::quotient(how.n, how.inner), inner = how.inner.value;
  for (uint64_t slice = blockIdx.y * uint64_t(blockDim.y) + threadIdx.y; slice < slices;
       slice += gridDim.y * uint64_t(blockDim.y)) {
    const uint64_t outer = gpu::quotient(slice, how.count);
    int64_t index = indices[slice - outer * how.count.value];
    if (!gpu::find_index(index, fault, how.call, how.axis, how.size)) continue;
    const T* const from = x + (outer * uint64_t(how.size) + uint64_t(index)) * inner;
    T* const to = out + slice * inner;
    for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < inner;
         i += gridDim.x * uint64_t(blockDim.x))
      to[i] = from[i];
  }
}
}  // namespace
#endif

#define TAKE(suffix, T)                                                              \
  KERNEL(256, take_##suffix)                                                         \
  (const T* x, const int64_t* indices, T* out, gpu::Slices how, gpu::Fault* fault) { \
    take(x, indices, out, how, fault);                                               \
  }
DVT_SIZES(TAKE)
