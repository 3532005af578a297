// An operand of an elementwise kernel: a tensor or a scalar.
#pragma once
#include "kernels/common/layout.hpp"
#include "kernels/common/portable.hpp"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
template <class T>
GPU_FN T value_of(const Scalar& scalar) {
  T value;
  __builtin_memcpy(&value, &scalar, sizeof value);
  return value;
}

// Input k along a row.
template <class T>
struct Operand {
  const T* data;
  int64_t step;
  bool varies;
  T value;

  template <int inputs>
  GPU_FN Operand(int k, const T* x, const Layout<inputs>& how, int64_t at)
      : data(x + at),
        step(how.step[k]),
        varies(how.varies >> k & 1),
        value(x && !varies ? *data : value_of<T>(how.value[k])) {}
};
}  // namespace gpu
#endif
