// any, all: of what is not 0. Integers by their size.
#include "kernels/common/reduction.hpp"

namespace {
template <class T, bool every>
struct Truth {
  using Input = T;
  using Output = bool;
  using Value = bool;
  static bool nothing() { return every; }
  static void add(bool& value, T x, uint64_t) { value = join(value, gpu::Compute<T>(x) != gpu::Compute<T>(0)); }
  static bool join(bool a, bool b) { return every ? a && b : a || b; }
  static bool result(bool value, const gpu::ReductionPlan&) { return value; }
};
}  // namespace

#define TRUTH(suffix, T)                   \
  using Any_##suffix = Truth<T, false>;    \
  using All_##suffix = Truth<T, true>;     \
  GPU_REDUCTION(any, suffix, Any_##suffix) \
  GPU_REDUCTION(all, suffix, All_##suffix)
DVT_UNSIGNED(TRUTH)
DVT_FLOATS(TRUTH)
