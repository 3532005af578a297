// max; of flipped elements min. NaN wins. Integers have no sign here: the host flips it.
#include "kernels/common/reduction.cuh"

namespace {
template <class T>
struct Greatest {
  using Input = T;
  using Output = T;
  using Value = gpu::Compute<T>;
  static __device__ __forceinline__ Value nothing() {
    if constexpr (std::is_floating_point_v<Value>) return -__builtin_inff();
    else return 0;
  }
  static __device__ __forceinline__ void add(Value& value, T x, uint64_t, const gpu::Variant& variant) {
    value = join(value, Value(gpu::flipped(x, variant)));
  }
  static __device__ __forceinline__ Value join(Value a, Value b) { return b > a || b != b ? b : a; }
  static __device__ __forceinline__ T result(Value value, const gpu::ReductionPlan&, const gpu::Variant& variant) {
    return gpu::flipped(T(value), variant);
  }
};
}  // namespace

#define GREATEST(suffix, T)              \
  using Greatest_##suffix = Greatest<T>; \
  GPU_REDUCTION(max, suffix, Greatest_##suffix)
DVT_UNSIGNED(GREATEST)
DVT_FLOATS(GREATEST)
