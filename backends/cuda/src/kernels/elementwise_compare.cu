// Comparisons, of which others are negations or exchange the operands: false where either is NaN, but for
// not_equal; and which kind of number a float is.
#include "kernels/common/elementwise.cuh"
#include "kernels/common/math.cuh"

namespace {
struct Equal {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Less {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a < b;
  }
};
struct NotEqual {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a != b;
  }
};
struct LessEqual {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct IsInf {
  template <class T>
  __device__ bool operator()(T x) const {
    return gpu::math::abs(x) == gpu::math::infinity<T>;
  }
};
struct IsFinite {
  template <class T>
  __device__ bool operator()(T x) const {
    return gpu::math::abs(x) < gpu::math::infinity<T>;
  }
};
}  // namespace

#define EQUALITY(suffix, T)                     \
  GPU_BINARY(equal_##suffix, Equal, bool, T, T) \
  GPU_BINARY(not_equal_##suffix, NotEqual, bool, T, T)
GPU_UNSIGNED(EQUALITY)
GPU_FLOATS(EQUALITY)

#define ORDER(suffix, T)                      \
  GPU_BINARY(less_##suffix, Less, bool, T, T) \
  GPU_BINARY(less_equal_##suffix, LessEqual, bool, T, T)
GPU_NUMBERS(ORDER)

#define KINDS(suffix, T)                    \
  GPU_UNARY(isinf_##suffix, IsInf, bool, T) \
  GPU_UNARY(isfinite_##suffix, IsFinite, bool, T)
GPU_FLOATS(KINDS)
