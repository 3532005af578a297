// Signs: of numbers, and what is left without them.
#include "kernels/common/elementwise.cuh"
#include "kernels/common/math.cuh"

namespace {
struct Sign {  // NaN stays
  template <class T>
  __device__ T operator()(T x) const {
    return x != x ? x : T((x > 0) - gpu::is_negative(x));
  }
};
struct Abs {  // the least integer is its own
  template <class T>
  __device__ T operator()(T x) const {
    return gpu::is_negative(x) ? T(uint64_t(0) - uint64_t(x)) : x;
  }
};
struct Copysign {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return gpu::math::copysign(a, b);
  }
};
}  // namespace

#define SIGN(suffix, T) GPU_UNARY(sign_##suffix, Sign, T, T)
GPU_NUMBERS(SIGN)

#define ABS(suffix, T) GPU_UNARY(abs_##suffix, Abs, T, T)
GPU_SIGNED(ABS)

#define COPYSIGN(suffix, T) GPU_BINARY(copysign_##suffix, Copysign, T, T, T)
GPU_FLOATS(COPYSIGN)
