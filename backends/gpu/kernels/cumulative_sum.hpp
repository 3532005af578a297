// cumulative_sum, cumulative_prod along one axis: operand 0 is x, operand 1 the result. A row that is cut into
// parts takes three kernels: the total of each part, the totals before each part, and the parts themselves.
#include "gpu/kernels/shared/totals.hpp"
#include "kernels/common/scan.hpp"

#define SCAN(name, suffix, R, T)                                                                         \
  GPU_KERNEL(1, name##_rows_##suffix)                                                                    \
  (const T* x, const R::Value* partial, T* out, gpu::ReductionPlan how, uint32_t initial) {              \
    gpu::scan_rows<R>(x, partial, out, how, initial);                                                    \
  }                                                                                                      \
  GPU_KERNEL(1, name##_columns_##suffix)(const T* x, T* out, gpu::ReductionPlan how, uint32_t initial) { \
    gpu::scan_columns<R>(x, out, how, initial);                                                          \
  }                                                                                                      \
  GPU_SCAN_TOTALS(name, suffix, R, T)                                                                    \
  GPU_KERNEL(1, name##_parts_##suffix)(R::Value * partial, gpu::ReductionPlan how) {                     \
    gpu::scan_parts<R>(partial, how);                                                                    \
  }

#define SCAN_FLOATS(suffix, T)                          \
  using Add_##suffix = gpu::FloatSum<T, gpu::Total<T>>; \
  using Multiply_##suffix = gpu::RunningProduct<T>;     \
  SCAN(cumulative_sum, suffix, Add_##suffix, T)         \
  SCAN(cumulative_prod, suffix, Multiply_##suffix, T)
DVT_FLOATS(SCAN_FLOATS)

#define SCAN_INTEGERS(suffix, T)                    \
  using Add_##suffix = gpu::IntegerSum<T>;          \
  using Multiply_##suffix = gpu::RunningProduct<T>; \
  SCAN(cumulative_sum, suffix, Add_##suffix, T)     \
  SCAN(cumulative_prod, suffix, Multiply_##suffix, T)
DVT_UNSIGNED(SCAN_INTEGERS)
