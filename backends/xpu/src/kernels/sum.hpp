// sum, mean, prod. Halves add up in float32; integers wrap, so signed types use the kernels of unsigned ones.
#include "kernels/common/reduction.hpp"
#include "kernels/common/types.hpp"

namespace {
template <class T, bool mean = false>
struct Add {
  using Input = T;
  using Output = T;
  using Value = dvt::CompensatedSum<gpu::Compute<T>>;
  static Value nothing() { return Value::nothing(); }
  static void add(Value& value, T x, uint64_t) { value.add(gpu::Compute<T>(x)); }
  static Value join(const Value& a, const Value& b) { return Value::join(a, b); }
  static T result(const Value& value, const gpu::Lines& how) {
    const auto total = value.total() + 0;  // 0 of nothing
    return T(mean ? total / gpu::Compute<T>(how.size) : total);
  }
};
template <class T>
struct AddIntegers {
  using Input = T;
  using Output = T;
  using Value = T;
  static T nothing() { return 0; }
  static void add(T& value, T x, uint64_t) { value = T(value + x); }
  static T join(T a, T b) { return T(a + b); }
  static T result(T value, const gpu::Lines&) { return value; }
};
template <class T>
struct Multiply {
  using Input = T;
  using Output = T;
  using Value = gpu::Compute<T>;
  static Value nothing() { return 1; }
  static void add(Value& value, T x, uint64_t) { value = join(value, Value(x)); }
  static Value join(Value a, Value b) {
    if constexpr (sizeof(Value) < 4) return Value(uint32_t(a) * b);
    else return a * b;
  }
  static T result(Value value, const gpu::Lines&) { return T(value); }
};
}  // namespace

#define SUM(suffix, T)                       \
  using Add_##suffix = Add<T>;               \
  using Mean_##suffix = Add<T, true>;        \
  using Multiply_##suffix = Multiply<T>;     \
  GPU_REDUCTION(sum, suffix, Add_##suffix)   \
  GPU_REDUCTION(mean, suffix, Mean_##suffix) \
  GPU_REDUCTION(prod, suffix, Multiply_##suffix)
DVT_FLOATS(SUM)

#define SUM_INTEGERS(suffix, T)            \
  using Add_##suffix = AddIntegers<T>;     \
  using Multiply_##suffix = Multiply<T>;   \
  GPU_REDUCTION(sum, suffix, Add_##suffix) \
  GPU_REDUCTION(prod, suffix, Multiply_##suffix)
DVT_UNSIGNED(SUM_INTEGERS)
