// dovetail/math.hpp - elementary functions of float32 and float64: exp and log below 1 ulp, the others within the
// tolerances of the schema. math_power.hpp, math_trigonometry.hpp and math_special.hpp continue it.
//
// Results are the same bits on every device that follows IEEE 754 in +, -, *, /, sqrt, fma and conversions: nothing
// else is used. No function for float computes in double, which many GPUs lack. The polynomials are minimax fits
// (core/tools/fits.py).
#ifndef DOVETAIL_MATH_HPP
#define DOVETAIL_MATH_HPP

#include "dovetail/portable.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
namespace math {
template <class T>
struct Format;
template <>
struct Format<float> {
  using Bits = uint32_t;
  using Signed = int32_t;
  static constexpr int digits = 23, bias = 127;
  static constexpr Signed root_half = 0x3f3504f3;  // the bits of sqrt(1/2)
};
template <>
struct Format<double> {
  using Bits = uint64_t;
  using Signed = int64_t;
  static constexpr int digits = 52, bias = 1023;
  static constexpr Signed root_half = 0x3fe6a09e667f3bcd;
};
template <class T>
using Bits = typename Format<T>::Bits;
template <class T>
DVT_FN Bits<T> bits(T x) {
  return bit_cast<Bits<T>>(x);
}

// The constant for float or the one for double.
template <class T>
constexpr T by_type(float single, double wide) {
  return sizeof(T) == 4 ? T(single) : T(wide);
}
template <class T>
inline constexpr T infinity = T(__builtin_inff());
template <class T>
inline constexpr T not_a_number = T(__builtin_nanf(""));
template <class T>
inline constexpr T smallest_normal = by_type<T>(0x1p-126f, 0x1p-1022);
template <class T>
inline constexpr T ln2 = by_type<T>(0x1.62e43p-1f, 0x1.62e42fefa39efp-1);
template <class T>
inline constexpr T log2_e = by_type<T>(0x1.715476p+0f, 0x1.71547652b82fep+0);
// ln 2 in two parts: a product of the first and a whole number below 2^11 (float32: 2^9) is exact.
template <class T>
inline constexpr T ln2_high = by_type<T>(0x1.62e4p-1f, 0x1.62e42fefa38p-1);
template <class T>
inline constexpr T ln2_low = by_type<T>(0x1.7f7d1cp-20f, 0x1.ef35793c7673p-45);
// The sum of this and a smaller number has the nearest integer, ties to even, in its lowest bits.
template <class T>
inline constexpr T rounder = by_type<T>(0x1.8p23f, 0x1.8p52);

// c0 + c1 x + c2 x^2 + ...
template <class T, class... C>
DVT_FN T polynomial(T x, T c0, C... rest) {
  if constexpr (sizeof...(rest) == 0) return c0;
  else return fma(polynomial(x, rest...), x, c0);
}

template <class T>
DVT_FN T rsqrt(T x) {
  return 1 / sqrt(x);
}

// x limited to [least, most]; NaN stays.
template <class T>
DVT_FN T bounded(T x, T least, T most) {
  return x < least ? least : x > most ? most : x;
}

// The unevaluated sum high + low, where low is the rounding error of high.
template <class T>
struct Sum {
  T high, low;
};
// x + y with its rounding error, for |x| >= |y| or x = 0.
template <class T>
DVT_FN Sum<T> fast_sum(T x, T y) {
  const T sum = x + y;
  return {sum, y - (sum - x)};
}
// x y with its rounding error.
template <class T>
DVT_FN Sum<T> product(T x, T y) {
  const T p = x * y;
  return {p, fma(x, y, -p)};
}

template <class T>
DVT_FN T power_of_two(int n) {
  return bit_cast<T>(Bits<T>(n + Format<T>::bias) << Format<T>::digits);
}
// y 2^n, |n| below twice the largest exponent; rounded once where the result is subnormal.
template <class T>
DVT_FN T scale(T y, int n) {
  const int half = n >> 1;
  return y * power_of_two<T>(half) * power_of_two<T>(n - half);
}

// The integer nearest to x y, for results below 2^21 (float64: 2^31).
template <class T>
struct Nearest {
  T n;
  int count;  // n as an integer

  DVT_FN Nearest(T x, T y) {
#if defined(SYCL_LANGUAGE_VERSION)  // instructions, which need fewer registers
    n = round(x * y);
    count = int(n);
#else
    const T sum = fma(x, y, rounder<T>);
    n = sum - rounder<T>;
    count = int(bits(sum) - bits(rounder<T>));
#endif
  }
};

// (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2
DVT_FN float exp_fit(float r) {
  return polynomial(r, 0.49999994f, 0.16666521f, 0.041668393f, 0.00836873f, 0.0013814474f);
}
DVT_FN double exp_fit(double r) {
  return polynomial(r, 0.5000000000000011, 0.16666666666666413, 0.04166666666652991, 0.008333333333494695,
                    0.0013888888943703992, 0.00019841269506231494, 2.4801493012995675e-05, 2.755758653239124e-06,
                    2.7630282034489765e-07, 2.5000060896741673e-08);
}

// x + low = count ln(2) + r, |r| <= ln(2) / 2
template <class T>
struct ExpArgument {
  Sum<T> r;
  int count;

  DVT_FN ExpArgument(T x, T low) {
    const Nearest<T> whole(x, log2_e<T>);
    r = fast_sum(fma(whole.n, -ln2_high<T>, x), fma(whole.n, -ln2_low<T>, low));
    count = whole.count;
  }
};
// exp(r) - 1 - r.high
template <class T>
DVT_FN T exp_tail(const Sum<T>& r) {
  return fma(r.high * r.high, exp_fit(r.high), r.low);
}
// exp(r) 2^n
template <class T>
DVT_FN T exp_scaled(const Sum<T>& r, int n) {
  const Sum<T> one = fast_sum(T(1), r.high);
  return scale(one.high + (one.low + exp_tail(r)), n);
}

// exp(x + low), where low is the rounding error of x.
template <class T>
DVT_FN T exp(T x, T low = 0) {
  const ExpArgument<T> a(bounded(x, by_type<T>(-104, -746), by_type<T>(89, 710)), low);
  return exp_scaled(a.r, a.count);
}

template <class T>
DVT_FN T expm1(T x) {
  const ExpArgument<T> a(bounded(x, by_type<T>(-18, -38), by_type<T>(89, 710)), T(0));
  const T p = a.r.high + exp_tail(a.r), half = power_of_two<T>(a.count - 1);
  return copysign(a.count ? 2 * fma(half, p, half - T(0.5)) : p, x);
}

// x = m 2^e with m in [sqrt(1/2), sqrt(2)), for finite x > 0.
template <class T>
struct Split {
  T m;
  int e;

  DVT_FN explicit Split(T x) {
    using Signed = typename Format<T>::Signed;
    constexpr int digits = Format<T>::digits;
    const bool small = x < smallest_normal<T>;
    const Bits<T> b = bits(small ? x * T(0x1p60) : x);  // unsigned: of a negative x the difference overflows
    const Signed exponent = Signed(b - Bits<T>(Format<T>::root_half)) >> digits;
    m = bit_cast<T>(Bits<T>(b - (Bits<T>(exponent) << digits)));
    e = int(exponent) - (small ? 60 : 0);
  }
};

// log(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2))
DVT_FN float log_tail(float f) {
  return f * f *
         fma(f,
             polynomial(f, 0.33333313f, -0.2500001f, 0.20002118f, -0.16668004f, 0.14219575f, -0.12405459f,
                        0.11887881f, -0.116763f, 0.06748024f),
             -0.5f);
}
DVT_FN double log_tail(double f) {  // by 2 atanh(s)
  const double s = f / (2 + f), z = s * s, half_square = 0.5 * f * f;
  const double rest =
      z * polynomial(z, 0.6666666666666734, 0.39999999999416425, 0.28571428742012683, 0.22222198610477886,
                     0.18183562442231874, 0.15314097478318645, 0.14795492120273987);
  return s * (half_square + rest) - half_square;
}
// log(x) + low for finite x > 0
template <class T>
DVT_FN T log_positive(T x, T low = 0) {
  const Split<T> split(x);
  const T f = split.m - 1, e = T(split.e);
  const Sum<T> sum = fast_sum(e * ln2_high<T>, f);
  return sum.high + (sum.low + (fma(e, ln2_low<T>, log_tail(f)) + low));
}
// A logarithm of x with its special cases: y where x is finite and positive.
template <class T>
DVT_FN T logarithm(T x, T y) {
  return x > 0 ? (x < infinity<T> ? y : x) : x == 0 ? -infinity<T> : not_a_number<T>;
}
template <class T>
DVT_FN T log(T x) {
  return logarithm(x, log_positive(x));
}
template <class T>
DVT_FN T log1p(T x) {
  const T u = 1 + x, lost = x - (u - 1);
  return copysign(logarithm(u, log_positive(u, lost / u)), x);
}
}  // namespace math
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_MATH_HPP
