// Quotients of integers; floor division with its remainder.
#include "kernels/common/division.cuh"
#include "kernels/common/elementwise.cuh"

namespace {
struct Quotient {  // x / 0 is 0, and the least one / -1 is itself
  template <class T>
  __device__ T operator()(T a, T b) const {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == T(-1)) return T(uint64_t(0) - uint64_t(a));
    return T(a / b);
  }
};
struct FloorDivide {  // of floats the floor of the rounded quotient
  template <class T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      const T q = Quotient()(a, b);
      return std::is_signed_v<T> && b != 0 && (a ^ b) < 0 && q * b != a ? T(q - 1) : q;
    } else return gpu::math::floor(a / b);
  }
};
struct Remainder {  // with the sign of b; of integers by 0 it is 0
  template <class T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      const T r = b == 0 || (std::is_signed_v<T> && b == T(-1)) ? T(0) : T(a % b);
      return std::is_signed_v<T> && r != 0 && (r ^ b) < 0 ? T(r + b) : r;
    } else return gpu::math::remainder(a, b);
  }
};
}  // namespace

#define QUOTIENT(suffix, T) GPU_BINARY(quotient_##suffix, Quotient, T, T, T)
GPU_INTEGERS(QUOTIENT)

#define FLOOR_DIVISION(suffix, T)                         \
  GPU_BINARY(floor_divide_##suffix, FloorDivide, T, T, T) \
  GPU_BINARY(remainder_##suffix, Remainder, T, T, T)
GPU_NUMBERS(FLOOR_DIVISION)
