// Copies whose operands are contiguous along different axes: through tiles in shared memory, so that both are read
// and written in rows.
#include "kernels/common/axes.hpp"
#include "kernels/common/rows.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace {
template <class T>
__device__ __forceinline__ void transpose(const T* x, T* out, const gpu::Transpose& how) {
  constexpr int edge = gpu::tile_edge(sizeof(T)), word = 4, size = int(sizeof(T));
  constexpr int padding = size < word ? word / size : 1;  // columns then lie in different banks
  __shared__ T tile[edge][edge + padding];
  const uint32_t across = threadIdx.x % gpu::warp_size, down = threadIdx.x / gpu::warp_size;
  const uint32_t rows = blockDim.x / gpu::warp_size;
  for (uint64_t t = blockIdx.x; t < how.tiles; t += gridDim.x) {
    const uint64_t rest = gpu::quotient(t, how.along[0]), other = gpu::quotient(rest, how.along[1]);
    const gpu::Place place = gpu::locate(how.others.axis, 0, how.others.axes, other);
    const uint64_t first[] = {(t - rest * how.along[0].value) * edge, (rest - other * how.along[1].value) * edge};
    const T* const from = x + place.at[0] + int64_t(first[0]) + int64_t(first[1]) * how.from;
    T* const to = out + place.at[1] + int64_t(first[1]) + int64_t(first[0]) * how.to;
    const auto part = [&](int axis) {
      const uint64_t left = how.size[axis] - first[axis];
      return uint32_t(left < edge ? left : edge);
    };
    const uint32_t n[] = {part(0), part(1)};
    for (uint32_t i = down; i < n[1]; i += rows)
      for (uint32_t j = across; j < n[0]; j += gpu::warp_size) tile[i][j] = from[int64_t(i) * how.from + j];
    __syncthreads();
    for (uint32_t j = down; j < n[0]; j += rows)
      for (uint32_t i = across; i < n[1]; i += gpu::warp_size) to[int64_t(j) * how.to + i] = tile[i][j];
    __syncthreads();
  }
}
}  // namespace
#endif

#define TRANSPOSE(suffix, T) \
  KERNEL(256, transpose_##suffix)(const T* x, T* out, gpu::Transpose how) { transpose(x, out, how); }
DVT_SIZES(TRANSPOSE)
