// argmax: where a row has its first greatest element, or its first NaN; of flipped elements argmin. Integers have
// no sign here: the host flips it.
#include "kernels/common/reduction.cuh"

namespace {
template <class T>
struct Found {
  T value;
  uint64_t index;
};
template <class T>
struct Where {
  using Input = T;
  using Output = int64_t;
  using Number = gpu::Compute<T>;
  using Value = Found<Number>;
  static constexpr uint64_t nowhere = ~uint64_t(0);
  static __device__ __forceinline__ Value nothing() { return {0, nowhere}; }
  static __device__ __forceinline__ bool exceeds(Number a, Number b) { return a > b || (a != a && b == b); }
  static __device__ __forceinline__ void add(Value& value, T x, uint64_t i, const gpu::Variant& variant) {
    const Number number(gpu::flipped(x, variant));
    if (value.index == nowhere || exceeds(number, value.value)) value = {number, i};
  }
  static __device__ __forceinline__ Value join(const Value& a, const Value& b) {
    if (a.index == nowhere || b.index == nowhere) return a.index == nowhere ? b : a;
    const bool takes_b = exceeds(b.value, a.value) || (b.index < a.index && !exceeds(a.value, b.value));
    return takes_b ? b : a;
  }
  static __device__ __forceinline__ int64_t result(const Value& value, const gpu::ReductionPlan&,
                                                   const gpu::Variant&) {
    return int64_t(value.index);
  }
};
}  // namespace

#define WHERE(suffix, T)           \
  using Where_##suffix = Where<T>; \
  GPU_REDUCTION(argmax, suffix, Where_##suffix)
DVT_UNSIGNED(WHERE)
DVT_FLOATS(WHERE)
