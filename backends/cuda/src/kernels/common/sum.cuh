// Sums of floats.
#pragma once
#include "kernels/common/types.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
using dvt::CompensatedSum;

// For 16-bit floats: float32 has digits to spare for them.
struct PlainSum {
  float value;

  static DVT_FN PlainSum nothing() { return {-0.0f}; }
  DVT_FN void add(float x) { value += x; }
  DVT_FN void scale(float factor) { value *= factor; }
  static DVT_FN PlainSum join(const PlainSum& a, const PlainSum& b) { return {a.value + b.value}; }
  DVT_FN float total() const { return value; }
};

template <class T>
using Sum = std::conditional_t<is_narrow<T>, PlainSum, CompensatedSum<Compute<T>>>;
}  // namespace gpu
#endif
