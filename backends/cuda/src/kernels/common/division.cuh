// Remainders of floats.
#pragma once
#include "kernels/common/math.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu::math {
// What a leaves divided by b, exactly, of finite a >= 0 and normal b > 0. A quotient of fewer digits than T has is
// at most one too large, and the fma that takes it off does not round.
template <class T>
__device__ __forceinline__ T normal_rest(T a, T b) {
  constexpr int digits = Format<T>::digits;
  while (a >= b) {
    const int gap = int(bits(a) >> digits) - int(bits(b) >> digits) - (digits - 2);
    const T divisor = gap > 0 ? bit_cast<T>(bits(b) + (Bits<T>(gap) << digits)) : b;
    a = fma(-trunc(a / divisor), divisor, a);
    if (a < 0) a += divisor;
  }
  return a;
}
// x - trunc(x / y) y, exactly; NaN where x is infinite or y is 0.
template <class T>
__device__ __forceinline__ T fmod(T x, T y) {
  T a = abs(x), b = abs(y);
  if (!(a < infinity<T>) || !(b > 0)) return not_a_number<T>;
  if (b == infinity<T>) return x;
  if (b < smallest_normal<T>) {  // first by a multiple of it that is normal, then both as many times as large
    constexpr T up = by_type<T>(0x1p24f, 0x1p53);
    a = normal_rest(normal_rest(a, b * up) * up, b * up) / up;
  } else {
    a = normal_rest(a, b);
  }
  return copysign(a, x);
}
// As Python's %: with the sign of y.
template <class T>
__device__ __forceinline__ T remainder(T x, T y) {
  const T r = fmod(x, y);
  if (r == 0) return copysign(T(0), y);
  return (r < 0) != (y < 0) ? r + y : r;
}
}  // namespace gpu::math
#endif
