// any, all: of what is not 0. Elements by their size; of a float the sign does not count.
#include "kernels/common/reduction.cuh"

namespace {
template <class T>
struct Found {  // any: one that is not 0; all, flipped: one that is
  using Input = T;
  using Output = bool;
  using Value = bool;
  static __device__ __forceinline__ bool nothing() { return false; }
  static __device__ __forceinline__ void add(bool& value, T x, uint64_t, const gpu::Variant& variant) {
    value |= ((x & T(variant.counts)) != 0) != bool(variant.flip);
  }
  static __device__ __forceinline__ bool join(bool a, bool b) { return a || b; }
  static __device__ __forceinline__ bool result(bool value, const gpu::ReductionPlan&,
                                                const gpu::Variant& variant) {
    return value != bool(variant.flip);
  }
};
}  // namespace

#define FOUND(suffix, T)           \
  using Found_##suffix = Found<T>; \
  GPU_REDUCTION(any, suffix, Found_##suffix)
DVT_UNSIGNED(FOUND)
