// dovetail/math_power.hpp - powers, exponentials and logarithms to other bases than e, lengths, hyperbolic
// functions and their inverses, remainders. See math.hpp.
#ifndef DOVETAIL_MATH_POWER_HPP
#define DOVETAIL_MATH_POWER_HPP

#include "dovetail/math.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
namespace math {
template <class T>
DVT_FN T exp2(T x) {  // exact at integers
  const T y = bounded(x, by_type<T>(-152, -1080), by_type<T>(130, 1030));
  const Nearest<T> whole(y, T(1));
  const Sum<T> r = product(y - whole.n, ln2<T>);
  return exp_scaled(r, whole.count);
}
template <class T>
DVT_FN T log2(T x) {  // exact at powers of 2
  const Split<T> split(x);
  return logarithm(x, T(split.e) + log_positive(split.m) * log2_e<T>);
}
template <class T>
DVT_FN T log10(T x) {
  return log(x) * by_type<T>(0x1.bcb7b2p-2f, 0x1.bcb7b1526e50ep-2);
}

// (2 atanh(s) - 2 s - 2/3 s^3) / s^5 as a function of z = s * s, for |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)
DVT_FN float atanh_tail(float z) { return polynomial(z, 0.40000153f, 0.28547162f, 0.23417923f); }
DVT_FN double atanh_tail(double z) {
  return polynomial(z, 0.3999999999999998, 0.2857142857144506, 0.2222222221754799, 0.18181818868988012,
                    0.15384556956310524, 0.13336314312616399, 0.11674878398178946, 0.11988537955078436);
}
// log(a) for finite a > 0 with half as many digits again: a product with it is accurate enough for an exponent.
template <class T>
DVT_FN Sum<T> log_in_two(T a) {
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
// a^y for finite a > 0
template <class T>
DVT_FN T positive_power(T a, T y) {
  constexpr T far = by_type<T>(0x1p36f, 0x1p70), beyond = by_type<T>(128, 1024);
  const Sum<T> factor = log_in_two(a);
  y = bounded(y, -far, far);
  const Sum<T> p = product(y, factor.high);
  return exp(p.high, abs(p.high) < beyond ? fma(y, factor.low, p.low) : T(0));
}
template <class T>
DVT_FN T pow(T x, T y) {  // special cases as in C99
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
DVT_FN T hypot(T x, T y) {  // without overflow on the way; an infinity wins over NaN
  constexpr T least = by_type<T>(0x1p-50f, 0x1p-450), most = by_type<T>(0x1p60f, 0x1p500);
  constexpr T up = by_type<T>(0x1p80f, 0x1p600), down = 1 / up;
  const T a = abs(x), b = abs(y), large = a > b ? a : b;
  const bool small = large<least, huge = large> most;
  const T k = small ? up : huge ? down : T(1), back = small ? down : huge ? up : T(1);
  const T length = sqrt((a * k) * (a * k) + (b * k) * (b * k)) * back;
  return a == infinity<T> || b == infinity<T> ? infinity<T> : length;
}
template <class T>
DVT_FN T logaddexp(T x, T y) {  // accurate to the larger of the result and the operands
  const bool first = x > y || x != x;
  const T large = first ? x : y, small = first ? y : x, d = small - large;
  const T t = d - small, error = (small - (d - t)) - (large + t);
  const T r = large + log1p(exp(d, d > by_type<T>(-104, -746) ? error : T(0)));
  return x == y ? x + ln2<T> : r;
}

// exp(a) / 2; it overflows later than exp(a).
template <class T>
DVT_FN T half_exp(T a) {
  const T half = exp(a * T(0.5));
  return half * T(0.5) * half;
}
template <class T>
DVT_FN T sinh(T x) {
  const T a = abs(x), e = expm1(a);
  return copysign(a < 20 ? (e + e / (e + 1)) * T(0.5) : half_exp(a), x);
}
template <class T>
DVT_FN T cosh(T x) {
  const T a = abs(x), e = exp(a);
  return a < 20 ? e * T(0.5) + T(0.5) / e : half_exp(a);
}
template <class T>
DVT_FN T tanh(T x) {
  const T t = expm1(abs(x) * -2);
  return copysign(t / (t + 2), x);
}
template <class T>
DVT_FN T asinh(T x) {
  const T a = abs(x), b = a < T(1e9) ? a : T(1);
  const T near = log1p(b + b * b / (1 + sqrt(1 + b * b)));
  return copysign(a < T(1e9) ? near : log(a) + ln2<T>, x);
}
template <class T>
DVT_FN T acosh(T x) {
  const T t = (x < T(1e9) ? x : T(1)) - 1;
  const T r = x < T(1e9) ? log1p(t + sqrt(t * (t + 2))) : log(x) + ln2<T>;
  return x < 1 ? not_a_number<T> : r;
}
template <class T>
DVT_FN T atanh(T x) {
  const T a = abs(x);
  return copysign(log1p(a * 2 / (1 - a)) * T(0.5), x);
}

// The exact remainder of a / b for finite a >= 0 and normal b > 0. A quotient of fewer digits than T has is at most
// one too large, and the fma that subtracts it does not round.
template <class T>
DVT_FN T normal_rest(T a, T b) {
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
DVT_FN T fmod(T x, T y) {
  T a = abs(x), b = abs(y);
  if (!(a < infinity<T>) || !(b > 0)) return not_a_number<T>;
  if (b == infinity<T>) return x;
  if (b < smallest_normal<T>) {  // first by a normal multiple of b, then with both scaled up
    constexpr T up = by_type<T>(0x1p24f, 0x1p53);
    a = normal_rest(normal_rest(a, b * up) * up, b * up) / up;
  } else {
    a = normal_rest(a, b);
  }
  return copysign(a, x);
}
// Python's %: the result has the sign of y.
template <class T>
DVT_FN T remainder(T x, T y) {
  const T r = fmod(x, y);
  if (r == 0) return copysign(T(0), y);
  return (r < 0) != (y < 0) ? r + y : r;
}
}  // namespace math
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_MATH_POWER_HPP
