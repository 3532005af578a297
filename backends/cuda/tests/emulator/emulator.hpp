// The part of CUDA C++ that this backend's kernels use, for a C++ compiler: src/kernels/common/kernel.cuh
// includes it instead of CUDA's headers if GPU_EMULATED is defined. The threads of a block are fibers of one
// thread of the host (device/multiprocessor.hpp).
//
// It does not detect races between blocks of one launch, which run one after the other, nor between threads
// if every tested order has a barrier between them. Static shared memory keeps the last block's values,
// dynamic shared memory is NaN when a block begins. The costs of calls and loads are unlike a GPU's.
#pragma once
#include <cstring>

#include "device/atomics.hpp"
#include "device/intrinsics.hpp"
#include "device/multiprocessor.hpp"
#include "device/registry.hpp"
#include "device/vectors.hpp"
#include "device/warp.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __constant__ static const
#define __shared__ static thread_local

#define threadIdx (::emulator::thread_index())
#define blockIdx (::emulator::surroundings().block_index)
#define blockDim (::emulator::surroundings().block)
#define gridDim (::emulator::surroundings().grid)

namespace emulator {
inline const Index& thread_index() { return current_thread->index; }
inline const Surroundings& surroundings() { return *current_thread->around; }

template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(Multiprocessor::of_kernel().dynamic_shared());
}
}  // namespace emulator

using dim3 = emulator::Extent;
inline constexpr int warpSize = 32;

// The macros that src/kernels/common/kernel.cuh describes.
#define KERNEL(threads, name)                                  \
  static constexpr int name##_bounds[] = {threads};            \
  static constexpr unsigned name##_threads = name##_bounds[0]; \
  extern "C" void name
#define DYNAMIC_SHARED(T, name) T* const name = ::emulator::dynamic_shared<T>()
