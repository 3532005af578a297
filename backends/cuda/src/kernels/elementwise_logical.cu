// Logic of numbers, which are true unless they are 0; that of bool is bitwise. Integers by
// their size.
#include "kernels/common/elementwise.cuh"

namespace {
struct LogicalAnd {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return (a != 0) & (b != 0);
  }
};
struct LogicalOr {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return (a != 0) | (b != 0);
  }
};
struct LogicalXor {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return (a != 0) != (b != 0);
  }
};
struct LogicalNot {
  template <class T>
  __device__ bool operator()(T x) const {
    return x == 0;
  }
};
}  // namespace

#define LOGICAL(suffix, T)                                 \
  GPU_BINARY(logical_and_##suffix, LogicalAnd, bool, T, T) \
  GPU_BINARY(logical_or_##suffix, LogicalOr, bool, T, T)   \
  GPU_BINARY(logical_xor_##suffix, LogicalXor, bool, T, T) \
  GPU_UNARY(logical_not_##suffix, LogicalNot, bool, T)
GPU_UNSIGNED(LOGICAL)
GPU_FLOATS(LOGICAL)
