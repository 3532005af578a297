// Sums of floats.
#pragma once
#include "kernels/common/types.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
// A sum that carries what rounding takes off it; infinities leave NaN behind there. Begins with -0, which changes
// nothing, not even a -0.
template <class T>
struct CompensatedSum {
  T value, lost;

  static __device__ __forceinline__ CompensatedSum nothing() { return {-T(0), T(0)}; }
  __device__ __forceinline__ void add(T x) {
    const T sum = value + x, part = sum - value;
    lost += (value - (sum - part)) + (x - part);
    value = sum;
  }
  __device__ __forceinline__ void scale(T factor) { value *= factor, lost *= factor; }
  static __device__ __forceinline__ CompensatedSum join(CompensatedSum a, const CompensatedSum& b) {
    a.add(b.value);
    a.lost += b.lost;
    return a;
  }
  __device__ __forceinline__ T total() const { return lost == lost && lost != 0 ? value + lost : value; }
};

// Of 16-bit floats: float32 has digits to spare for them.
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
