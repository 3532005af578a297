// Sums of floats.
#pragma once
#include "kernels/common/types.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
using dvt::CompensatedSum;

// For 16-bit floats: float32 has digits to spare for them.
struct PlainSum {
  float value;

  static __device__ __forceinline__ PlainSum nothing() { return {-0.0f}; }
  __device__ __forceinline__ void add(float x) { value += x; }
  __device__ __forceinline__ void scale(float factor) { value *= factor; }
  static __device__ __forceinline__ PlainSum join(const PlainSum& a, const PlainSum& b) {
    return {a.value + b.value};
  }
  __device__ __forceinline__ float total() const { return value; }
};

template <class T>
using Sum = std::conditional_t<is_narrow<T>, PlainSum, CompensatedSum<Compute<T>>>;
}  // namespace gpu
#endif
