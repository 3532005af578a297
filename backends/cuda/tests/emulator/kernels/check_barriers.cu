// For the tests of the emulator: correct and wrong uses of shared memory and barriers.
#include "kernels/common/kernel.cuh"

namespace {
__device__ float warp_sum(float v) {
  for (int bits = 16; bits; bits /= 2) v += __shfl_xor_sync(~0u, v, bits);
  return v;
}

template <bool has_barrier>
__device__ void block_sum(const float* x, float* sums) {
  __shared__ float of_warps[32];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const float sum = warp_sum(x[blockIdx.x * blockDim.x + threadIdx.x]);
  if (lane == 0) of_warps[warp] = sum;
  if (has_barrier) __syncthreads();
  const float all = warp_sum(lane < blockDim.x / 32 ? of_warps[lane] : 0.0f);
  if (threadIdx.x == 0) sums[blockIdx.x] = all;
  __syncthreads();
}

template <bool has_barrier>
__device__ void reverse(const int32_t* x, int32_t* y) {
  DYNAMIC_SHARED(int32_t, all);
  all[threadIdx.x] = x[threadIdx.x];
  if (has_barrier) __syncthreads();
  y[threadIdx.x] = all[blockDim.x - 1 - threadIdx.x];
}

// Adjacent lanes of a warp exchange values through memory.
template <bool has_barrier>
__device__ void swap_lanes(const int32_t* x, int32_t* y) {
  __shared__ int32_t all[32];
  all[threadIdx.x] = x[threadIdx.x];
  if (has_barrier) __syncwarp();
  y[threadIdx.x] = all[threadIdx.x ^ 1];
}
}  // namespace

KERNEL(256, check_sum)(const float* x, float* y) { block_sum<true>(x, y); }
KERNEL(256, check_sum_without_barrier)(const float* x, float* y) { block_sum<false>(x, y); }
KERNEL(256, check_reverse)(const int32_t* x, int32_t* y) { reverse<true>(x, y); }
KERNEL(256, check_reverse_without_barrier)(const int32_t* x, int32_t* y) { reverse<false>(x, y); }
KERNEL(32, check_swap)(const int32_t* x, int32_t* y) { swap_lanes<true>(x, y); }
KERNEL(32, check_swap_without_barrier)(const int32_t* x, int32_t* y) { swap_lanes<false>(x, y); }

KERNEL(1024, check_barriers)(uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) __syncthreads();
}

// Whole warps that have returned are not waited for.
KERNEL(256, check_returned_warps)(int32_t* y) {
  if (threadIdx.x >= 64) return;
  __syncthreads();
  y[threadIdx.x] = int32_t(threadIdx.x);
}

KERNEL(256, check_barrier_in_half_a_warp)() {
  if (threadIdx.x % 32 < 16) __syncthreads();
}

KERNEL(256, check_barriers_in_both_branches)() {
  if (threadIdx.x % 2) __syncthreads();
  else __syncthreads();
}

KERNEL(64, check_barrier_and_shuffle)() {
  if (threadIdx.x == 40) __syncthreads();
  else __syncwarp();
}

KERNEL(256, check_poison)(float* y) {
  DYNAMIC_SHARED(float, all);
  y[blockIdx.x * blockDim.x + threadIdx.x] = all[threadIdx.x];
  all[threadIdx.x] = 1.0f;
}

// Writes one element beyond its dynamic shared memory.
KERNEL(256, check_shared_overrun)() {
  DYNAMIC_SHARED(int32_t, all);
  all[threadIdx.x + 1] = 0;
}
