// sum, of which mean is a variant, and prod. Halves add up in float32; integers wrap, so signed types use the
// kernels of unsigned ones.
#include "kernels/common/reduction.cuh"
#include "kernels/common/sum.cuh"

namespace {
template <class T>
struct Add {
  using Input = T;
  using Output = T;
  using Value = gpu::Sum<T>;
  static __device__ __forceinline__ Value nothing() { return Value::nothing(); }
  static __device__ __forceinline__ void add(Value& value, T x, uint64_t, const gpu::Variant&) {
    value.add(gpu::Compute<T>(x));
  }
  static __device__ __forceinline__ Value join(const Value& a, const Value& b) { return Value::join(a, b); }
  static __device__ __forceinline__ T result(const Value& value, const gpu::Lines& how,
                                             const gpu::Variant& variant) {
    const auto total = value.total() + 0;  // 0 of nothing
    return T(variant.mean ? total / gpu::Compute<T>(how.size) : total);
  }
};
template <class T>
struct AddIntegers {
  using Input = T;
  using Output = T;
  using Value = T;
  static __device__ __forceinline__ T nothing() { return 0; }
  static __device__ __forceinline__ void add(T& value, T x, uint64_t, const gpu::Variant&) { value = T(value + x); }
  static __device__ __forceinline__ T join(T a, T b) { return T(a + b); }
  static __device__ __forceinline__ T result(T value, const gpu::Lines&, const gpu::Variant&) { return value; }
};
template <class T>
struct Multiply {
  using Input = T;
  using Output = T;
  using Value = gpu::Compute<T>;
  static __device__ __forceinline__ Value nothing() { return 1; }
  static __device__ __forceinline__ void add(Value& value, T x, uint64_t, const gpu::Variant&) {
    value = join(value, Value(x));
  }
  static __device__ __forceinline__ Value join(Value a, Value b) {
    if constexpr (sizeof(Value) < 4) return Value(uint32_t(a) * b);
    else return a * b;
  }
  static __device__ __forceinline__ T result(Value value, const gpu::Lines&, const gpu::Variant&) {
    return T(value);
  }
};
}  // namespace

#define SUM(suffix, T)                     \
  using Add_##suffix = Add<T>;             \
  using Multiply_##suffix = Multiply<T>;   \
  GPU_REDUCTION(sum, suffix, Add_##suffix) \
  GPU_REDUCTION(prod, suffix, Multiply_##suffix)
DVT_FLOATS(SUM)

#define SUM_INTEGERS(suffix, T)            \
  using Add_##suffix = AddIntegers<T>;     \
  using Multiply_##suffix = Multiply<T>;   \
  GPU_REDUCTION(sum, suffix, Add_##suffix) \
  GPU_REDUCTION(prod, suffix, Multiply_##suffix)
DVT_UNSIGNED(SUM_INTEGERS)
