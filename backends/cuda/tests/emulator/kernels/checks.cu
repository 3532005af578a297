// Kernels for the tests of the emulator: right ones, and ones that are wrong in one place.
#include "kernels/common/kernel.cuh"

namespace {
__device__ float warp_sum(float v) {
  for (int bits = 16; bits; bits /= 2) v += __shfl_xor_sync(~0u, v, bits);
  return v;
}

template <bool with_barrier>
__device__ float block_sum(float v) {
  __shared__ float sums[32];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  v = warp_sum(v);
  if (lane == 0) sums[warp] = v;
  if (with_barrier) __syncthreads();
  v = warp_sum(lane < blockDim.x / 32 ? sums[lane] : 0.0f);
  __syncthreads();
  return v;
}
}  // namespace

KERNEL(256, check_sum)(const float* x, float* sums) {
  const float sum = block_sum<true>(x[blockIdx.x * blockDim.x + threadIdx.x]);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

KERNEL(256, check_sum_without_barrier)(const float* x, float* sums) {
  const float sum = block_sum<false>(x[blockIdx.x * blockDim.x + threadIdx.x]);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Neighbours exchange through dynamic shared memory.
KERNEL(256, check_reverse)(const int* x, int* y) {
  DYNAMIC_SHARED(int, all);
  all[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = all[blockDim.x - 1 - threadIdx.x];
}

KERNEL(256, check_reverse_without_barrier)(const int* x, int* y) {
  DYNAMIC_SHARED(int, all);
  all[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = all[blockDim.x - 1 - threadIdx.x];
}

KERNEL(256, check_barriers)(uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) __syncthreads();
}

KERNEL(256, check_index)(uint32_t* y) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = i;
}
