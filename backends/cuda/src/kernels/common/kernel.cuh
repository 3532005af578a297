// Included by every family of kernels. A family is one file of src/kernels: nvcc compiles it for GPUs, and a
// C++ compiler for the emulator, which runs the same kernels on the host (tests/emulator).
//
// KERNEL(threads, name)(parameters) { ... } is a kernel that is launched with blocks of at most so many threads;
// its name is unique among all families. Parameters are pointers, numbers and plain structs. `threads` may be a
// macro of two numbers: the second is of the blocks that registers of a multiprocessor are to suffice for.
//
// Results are the same bits on every GPU and in the emulator: arithmetic is +, -, *, /, square roots, fma and
// conversions, which IEEE 754 fixes, and neither compiler contracts them. Functions of CUDA's library are not used.
#pragma once
#include <cstdint>
#include <type_traits>

#if defined(GPU_LIST_KERNELS)  // the build lists the kernels with the preprocessor
#define KERNEL(threads, name) @kernel name
#elif defined(GPU_EMULATED)
#include "emulator.hpp"
#else
#define KERNEL(threads, name) extern "C" __global__ void __launch_bounds__(threads) name
#define DYNAMIC_SHARED(T, name)                                    \
  extern __shared__ __align__(128) unsigned char dynamic_shared[]; \
  T* const name = reinterpret_cast<T*>(dynamic_shared)
#endif

// GPU_FN begins a function of backends/gpu/kernels that kernels alone call.
#define GPU_FN __device__ __forceinline__
// A kernel there: over so many dimensions, by blocks of the usual size.
#define GPU_KERNEL(dims, name) KERNEL(256, name)

#if !defined(GPU_LIST_KERNELS)
#include "dovetail/math.hpp"

namespace gpu {
using dvt::bit_cast;
namespace math = dvt::math;

// body(i) for this thread's share of [0, n), whatever the grid.
template <class Body>
__device__ __forceinline__ void for_each_item(uint64_t n, Body body) {
  const uint64_t step = uint64_t(gridDim.x) * blockDim.x;
  for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) body(i);
}
}  // namespace gpu
#endif
