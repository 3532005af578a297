// Powers; exponentials and logarithms to other bases than e; lengths.
#pragma once
#include "kernels/common/math.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu::math {
template <class T>
__device__ __forceinline__ T exp2(T x) {  // exact at integers
  const T y = bounded(x, by_type<T>(-152, -1080), by_type<T>(130, 1030));
  const Nearest<T> whole(y, T(1));
  const Sum<T> r = product(y - whole.n, ln2<T>);
  return exp_scaled(r, whole.count);
}
template <class T>
__device__ __forceinline__ T log2(T x) {  // exact at powers of 2
  const Split<T> split(x);
  return logarithm(x, T(split.e) + log_positive(split.m) * log2_e<T>);
}
template <class T>
__device__ __forceinline__ T log10(T x) {
  return log(x) * by_type<T>(0x1.bcb7b2p-2f, 0x1.bcb7b1526e50ep-2);
}

// (2 atanh(s) - 2 s - 2/3 s^3) / s^5 of z = s * s, |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)
__device__ __forceinline__ float atanh_tail(float z) {
  return polynomial(z, 0.40000153f, 0.28547162f, 0.23417923f);
}
__device__ __forceinline__ double atanh_tail(double z) {
  return polynomial(z, 0.3999999999999998, 0.2857142857144506, 0.2222222221754799, 0.18181818868988012,
                    0.15384556956310524, 0.13336314312616399, 0.11674878398178946, 0.11988537955078436);
}
// log(a) of a finite a > 0 with half as many digits again, so that a product of it can be an exponent.
template <class T>
__device__ __forceinline__ Sum<T> log_in_two(T a) {
  constexpr T third = by_type<T>(0x1.555556p-1f, 0x1.5555555555555p-1),  // 2/3 in two parts
      third_low = by_type<T>(-0x1.555556p-26f, 0x1.5555555555555p-55);
  const Split<T> split(a);
  const T e = T(split.e), m = split.m, below = m - 1, above = m + 1;
  const T s = below / above, s_low = (fma(-s, above, below) - s * (m - (above - 1))) / above;
  const Sum<T> z = product(s, s);
  const T z_low = fma(2 * s, s_low, z.low);
  const Sum<T> cube = product(z.high, third);
  const T cube_low = cube.low + fma(z.high, third_low, z_low * third) + z.high * z.high * atanh_tail(z.high);
  const Sum<T> t = product(s, cube.high);  // log(m) = (s + s_low) (2 + cube + cube_low)
  const Sum<T> first = fast_sum(e * ln2_high<T>, 2 * s), second = fast_sum(first.high, t.high);
  const T rest = fma(e, ln2_low<T>, fma(s_low, 2 + cube.high, fma(s, cube_low, t.low)));
  return fast_sum(second.high, first.low + (second.low + rest));
}
// a^y of a finite a > 0
template <class T>
__device__ __forceinline__ T positive_power(T a, T y) {
  constexpr T far = by_type<T>(0x1p36f, 0x1p70), beyond = by_type<T>(128, 1024);
  const Sum<T> factor = log_in_two(a);
  y = bounded(y, -far, far);
  const Sum<T> p = product(y, factor.high);
  return exp(p.high, abs(p.high) < beyond ? fma(y, factor.low, p.low) : T(0));
}
template <class T>
__device__ __forceinline__ T pow(T x, T y) {  // special cases as in C99
  const T a = abs(x), half = y * T(0.5);
  const bool finite = abs(y) < infinity<T>, whole = floor(y) == y, odd = finite && whole && floor(half) != half;
  const bool limit = a == 0 || a == infinity<T>;
  T r = positive_power(limit ? T(1) : a, y);
  r = limit ? ((a == 0) == (y < 0) ? infinity<T> : T(0)) : r;
  r = odd ? copysign(r, x) : r;
  r = (x < 0 && !limit && finite && !whole) || x != x || y != y ? not_a_number<T> : r;
  return x == 1 || y == 0 ? T(1) : r;
}

template <class T>
__device__ __forceinline__ T hypot(T x, T y) {  // without overflow on the way; an infinity wins over NaN
  constexpr T least = by_type<T>(0x1p-50f, 0x1p-450), most = by_type<T>(0x1p60f, 0x1p500);
  constexpr T up = by_type<T>(0x1p80f, 0x1p600), down = 1 / up;
  const T a = abs(x), b = abs(y), large = a > b ? a : b;
  const bool small = large<least, huge = large> most;
  const T k = small ? up : huge ? down : T(1), back = small ? down : huge ? up : T(1);
  const T length = sqrt((a * k) * (a * k) + (b * k) * (b * k)) * back;
  return a == infinity<T> || b == infinity<T> ? infinity<T> : length;
}
template <class T>
__device__ __forceinline__ T logaddexp(T x, T y) {  // accurate to the larger of the result and the operands
  const bool first = x > y || x != x;
  const T large = first ? x : y, small = first ? y : x, d = small - large;
  const T t = d - small, error = (small - (d - t)) - (large + t);
  const T r = large + log1p(exp(d, d > by_type<T>(-104, -746) ? error : T(0)));
  return x == y ? x + ln2<T> : r;
}
}  // namespace gpu::math
#endif
