// sum, mean, prod. fp16 and bf16 add up in float32; integers wrap, so signed types use the kernels of unsigned
// ones.
#include "gpu/kernels/shared/totals.hpp"
#include "kernels/common/reduction.hpp"
#include "kernels/common/types.hpp"

namespace {
template <class T>
using Sum = dvt::CompensatedSum<gpu::Compute<T>>;
template <class T, bool mean = false>
struct Add : gpu::Reduction<gpu::FloatSum<T, Sum<T>>> {
  static T result(const Sum<T>& value, const gpu::ReductionPlan& how) {
    const auto total = value.total() + 0;  // 0 of nothing
    return T(mean ? total / gpu::Compute<T>(how.size) : total);
  }
};
}  // namespace

#define SUM(suffix, T)                                              \
  using Add_##suffix = Add<T>;                                      \
  using Mean_##suffix = Add<T, true>;                               \
  using Multiply_##suffix = gpu::Reduction<gpu::RunningProduct<T>>; \
  GPU_REDUCTION(sum, suffix, Add_##suffix)                          \
  GPU_REDUCTION(mean, suffix, Mean_##suffix)                        \
  GPU_REDUCTION(prod, suffix, Multiply_##suffix)
DVT_FLOATS(SUM)

#define SUM_INTEGERS(suffix, T)                                     \
  using Add_##suffix = gpu::Reduction<gpu::IntegerSum<T>>;          \
  using Multiply_##suffix = gpu::Reduction<gpu::RunningProduct<T>>; \
  GPU_REDUCTION(sum, suffix, Add_##suffix)                          \
  GPU_REDUCTION(prod, suffix, Multiply_##suffix)
DVT_UNSIGNED(SUM_INTEGERS)
