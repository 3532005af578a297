// sum, of which mean is a variant, and prod. fp16 and bf16 add up in float32; integers wrap, so signed types use
// the kernels of unsigned ones.
#include "gpu/kernels/shared/totals.hpp"
#include "kernels/common/reduction.cuh"
#include "kernels/common/sum.cuh"

namespace {
template <class T>
struct Add : gpu::Reduction<gpu::FloatSum<T, gpu::Sum<T>>> {
  static DVT_FN T result(const gpu::Sum<T>& value, const gpu::ReductionPlan& how, const gpu::Variant& variant) {
    const auto total = value.total() + 0;  // 0 of nothing
    return T(variant.mean ? total / gpu::Compute<T>(how.size) : total);
  }
};
}  // namespace

#define SUM(suffix, T)                                              \
  using Add_##suffix = Add<T>;                                      \
  using Multiply_##suffix = gpu::Reduction<gpu::RunningProduct<T>>; \
  GPU_REDUCTION(sum, suffix, Add_##suffix)                          \
  GPU_REDUCTION(prod, suffix, Multiply_##suffix)
DVT_FLOATS(SUM)

#define SUM_INTEGERS(suffix, T)                                     \
  using Add_##suffix = gpu::Reduction<gpu::IntegerSum<T>>;          \
  using Multiply_##suffix = gpu::Reduction<gpu::RunningProduct<T>>; \
  GPU_REDUCTION(sum, suffix, Add_##suffix)                          \
  GPU_REDUCTION(prod, suffix, Multiply_##suffix)
DVT_UNSIGNED(SUM_INTEGERS)
