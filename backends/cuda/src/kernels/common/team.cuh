// Threads of a block that work on a row together. A team has `lane` and `width`, its threads, and join(value).
#pragma once
#include "kernels/common/shuffle.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
template <class T, int n>
__device__ __forceinline__ T* shared_slots() {
  __shared__ T slots[n];
  return slots;
}

// Adjacent threads: some lanes of a warp, or all of a block that has more than one.
struct Row {
  uint32_t lane, width;

  __device__ __forceinline__ explicit Row(uint32_t threads) : lane(threadIdx.x & (threads - 1)), width(threads) {}

  // The threads' values joined by R::join, in an order that depends on the width alone, and returned to every
  // thread.
  template <class R, class Value>
  __device__ __forceinline__ Value join(Value value) const {
    const uint32_t near = width < warp_size ? width : warp_size;
    value = join_first<R>(value, near);
    if (width > warp_size) {
      const uint32_t warps = width / warp_size;
      Value* const slots = shared_slots<Value, warp_size>();
      if (lane % warp_size == 0) slots[lane / warp_size] = value;
      __syncthreads();
      value = join_first<R>(slots[lane % warps], warps);
      __syncthreads();
    }
    return shuffle(value, 0, near);
  }

  // The values of the threads before this one joined; `all` becomes those of all threads.
  template <class R, class Value>
  __device__ __forceinline__ Value scan(Value value, Value& all) const {
    const uint32_t near = width < warp_size ? width : warp_size, place = lane % near;
    value = scan_group<R>(value, near);
    all = shuffle(value, near - 1, near);
    const Value preceding = shuffle_up(value, 1, near);
    Value before = place ? preceding : R::nothing();
    if (width > warp_size) {
      const uint32_t warps = width / warp_size, warp = lane / warp_size;
      Value* const slots = shared_slots<Value, warp_size>();
      if (place == warp_size - 1) slots[warp] = value;
      __syncthreads();
      const Value warps_so_far = scan_group<R>(slots[lane % warps], warps);
      all = shuffle(warps_so_far, warps - 1);
      const Value behind = shuffle(warps_so_far, warp ? warp - 1 : 0);
      if (warp) before = R::join(behind, before);
      __syncthreads();
    }
    return before;
  }

 private:
  // Returns the joined value in the first lane of each group.
  template <class R, class Value>
  static __device__ __forceinline__ Value join_first(Value value, uint32_t group) {
    for (uint32_t step = group / 2; step; step /= 2) value = R::join(value, shuffle_down(value, step, group));
    return value;
  }
  template <class R, class Value>
  static __device__ __forceinline__ Value scan_group(Value value, uint32_t group) {
    for (uint32_t step = 1; step < group; step *= 2) {
      const Value lower = shuffle_up(value, step, group);
      if (threadIdx.x % group >= step) value = R::join(lower, value);
    }
    return value;
  }
};

// Threads that share one row while the adjacent threads of the block have the rows next to it, so that reads are
// contiguous.
struct Column {
  static constexpr int most_threads = 256;  // of a block
  uint32_t lane, width, columns;

  __device__ __forceinline__ explicit Column(uint32_t threads) : width(threads), columns(blockDim.x / threads) {
    lane = threadIdx.x / columns;
  }

  template <class R, class Value>
  __device__ __forceinline__ Value join(Value value) const {
    if (width == 1) return value;
    Value* const slots = shared_slots<Value, most_threads>();
    slots[threadIdx.x] = value;
    for (uint32_t half = width / 2; half; half /= 2) {
      __syncthreads();
      if (lane < half) slots[threadIdx.x] = value = R::join(value, slots[threadIdx.x + half * columns]);
    }
    __syncthreads();
    value = slots[threadIdx.x - lane * columns];
    __syncthreads();
    return value;
  }
};

// A thread alone.
struct Alone {
  static constexpr uint32_t lane = 0, width = 1;

  template <class R, class Value>
  __device__ __forceinline__ Value scan(Value value, Value& all) const {
    all = value;
    return R::nothing();
  }
};
}  // namespace gpu
#endif
