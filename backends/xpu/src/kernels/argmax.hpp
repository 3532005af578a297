// argmax, argmin: where a row has its first extremum, or its first NaN.
#include "kernels/common/reduction.hpp"

namespace {
template <class T>
struct Found {
  T value;
  uint64_t index;
};
template <class T, bool most>
struct Where {
  using Input = T;
  using Output = int64_t;
  using Value = Found<gpu::Compute<T>>;
  static Value nothing() { return {0, ~uint64_t(0)}; }
  static void add(Value& value, T x, uint64_t i) { value = join(value, {gpu::Compute<T>(x), i}); }
  static Value join(const Value& a, const Value& b) {
    if (a.index == ~uint64_t(0)) return b;
    if (b.index == ~uint64_t(0)) return a;
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a.value == b.value || (a_is_nan && b_is_nan)) return a.index < b.index ? a : b;
    return b_is_nan || (!a_is_nan && (most ? b.value > a.value : b.value < a.value)) ? b : a;
  }
  static int64_t result(const Value& value, const gpu::ReductionPlan&) { return int64_t(value.index); }
};
}  // namespace

#define ARG(suffix, T)                           \
  using Argmax_##suffix = Where<T, true>;        \
  using Argmin_##suffix = Where<T, false>;       \
  GPU_REDUCTION(argmax, suffix, Argmax_##suffix) \
  GPU_REDUCTION(argmin, suffix, Argmin_##suffix)
DVT_NUMBERS(ARG)
