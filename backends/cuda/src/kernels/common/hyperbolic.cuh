// Hyperbolic functions and their inverses.
#pragma once
#include "kernels/common/math.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu::math {
// exp(a) / 2, which overflows later than exp(a).
template <class T>
__device__ __forceinline__ T half_exp(T a) {
  const T half = exp(a * T(0.5));
  return half * T(0.5) * half;
}
template <class T>
__device__ __forceinline__ T sinh(T x) {
  const T a = abs(x), e = expm1(a);
  return copysign(a < 20 ? (e + e / (e + 1)) * T(0.5) : half_exp(a), x);
}
template <class T>
__device__ __forceinline__ T cosh(T x) {
  const T a = abs(x), e = exp(a);
  return a < 20 ? e * T(0.5) + T(0.5) / e : half_exp(a);
}
template <class T>
__device__ __forceinline__ T tanh(T x) {
  const T t = expm1(abs(x) * -2);
  return copysign(t / (t + 2), x);
}
template <class T>
__device__ __forceinline__ T asinh(T x) {
  const T a = abs(x), b = a < T(1e9) ? a : T(1);
  const T near = log1p(b + b * b / (1 + sqrt(1 + b * b)));
  return copysign(a < T(1e9) ? near : log(a) + ln2<T>, x);
}
template <class T>
__device__ __forceinline__ T acosh(T x) {
  const T t = (x < T(1e9) ? x : T(1)) - 1;
  const T r = x < T(1e9) ? log1p(t + sqrt(t * (t + 2))) : log(x) + ln2<T>;
  return x < 1 ? not_a_number<T> : r;
}
template <class T>
__device__ __forceinline__ T atanh(T x) {
  const T a = abs(x);
  return copysign(log1p(a * 2 / (1 - a)) * T(0.5), x);
}
}  // namespace gpu::math
#endif
