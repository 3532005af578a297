// Slices along one axis that indices name, overwritten with updates. Threads along x take elements of a slice,
// those along y slices.
#include "gpu/kernels/shared/slices.hpp"
#include "kernels/common/elementwise.hpp"
#include "kernels/common/raise.cuh"
#include "kernels/common/rows.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace {
template <class T>
__device__ __forceinline__ void scatter(const T* updates, const int64_t* indices, T* out, const gpu::Slices& how,
                                        const gpu::IterationSpace& from, const gpu::Scalar& value,
                                        gpu::Fault* fault) {
  const uint64_t slices = gpu::quotient(how.n, how.inner), inner = how.inner.value;
  for (uint64_t slice = blockIdx.y * uint64_t(blockDim.y) + threadIdx.y; slice < slices;
       slice += gridDim.y * uint64_t(blockDim.y)) {
    const uint64_t outer = gpu::quotient(slice, how.count);
    int64_t index = indices[slice - outer * how.count.value];
    if (!gpu::find_index(index, fault, how.call, how.axis, how.size)) continue;
    T* const to = out + (outer * uint64_t(how.size) + uint64_t(index)) * inner;
    for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < inner;
         i += gridDim.x * uint64_t(blockDim.x))
      to[i] = updates ? updates[gpu::locate(from.axis, 0, from.axes, slice * inner + i).at[0]]
                      : gpu::value_of<T>(value);
  }
}
}  // namespace
#endif

#define SCATTER(suffix, T)                                                                                         \
  KERNEL(256, scatter_##suffix)                                                                                    \
  (const T* updates, const int64_t* indices, T* out, gpu::Slices how, gpu::IterationSpace from, gpu::Scalar value, \
   gpu::Fault* fault) {                                                                                            \
    scatter(updates, indices, out, how, from, value, fault);                                                       \
  }
DVT_SIZES(SCATTER)
