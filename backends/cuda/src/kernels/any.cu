// any, all: of what is not 0. Integers by their size.
#include "kernels/common/reduction.cuh"

namespace {
template <class T, bool every>
struct Truth {
  using Input = T;
  using Output = bool;
  using Value = bool;
  static __device__ __forceinline__ bool nothing() { return every; }
  static __device__ __forceinline__ void add(bool& value, T x, uint64_t) {
    value = join(value, gpu::Compute<T>(x) != gpu::Compute<T>(0));
  }
  static __device__ __forceinline__ bool join(bool a, bool b) { return every ? a && b : a || b; }
  static __device__ __forceinline__ bool result(bool value, const gpu::Lines&) { return value; }
};
}  // namespace

#define TRUTH(suffix, T)                   \
  using Any_##suffix = Truth<T, false>;    \
  using All_##suffix = Truth<T, true>;     \
  GPU_REDUCTION(any, suffix, Any_##suffix) \
  GPU_REDUCTION(all, suffix, All_##suffix)
GPU_UNSIGNED(TRUTH)
GPU_FLOATS(TRUTH)
