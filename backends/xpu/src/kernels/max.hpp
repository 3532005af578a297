// max, min: NaN wins.
#include "kernels/common/reduction.hpp"

namespace {
template <class T, bool most>
struct Extremum {
  using Input = T;
  using Output = T;
  using Value = gpu::Compute<T>;
  static Value nothing() {
    if constexpr (std::is_floating_point_v<Value>) return most ? -__builtin_inff() : __builtin_inff();
    else if constexpr (std::is_same_v<T, bool>) return !most;
    else if constexpr (std::is_unsigned_v<T>) return most ? T(0) : T(~T(0));
    else return T((uint64_t(1) << (8 * sizeof(T) - 1)) - (most ? 0 : 1));
  }
  static void add(Value& value, T x, uint64_t) { value = join(value, Value(x)); }
  static Value join(Value a, Value b) { return (most ? b > a : b < a) || b != b ? b : a; }
  static T result(Value value, const gpu::ReductionPlan&) { return T(value); }
};
}  // namespace

#define EXTREMA(suffix, T)                 \
  using Max_##suffix = Extremum<T, true>;  \
  using Min_##suffix = Extremum<T, false>; \
  GPU_REDUCTION(max, suffix, Max_##suffix) \
  GPU_REDUCTION(min, suffix, Min_##suffix)
DVT_ALL(EXTREMA)
