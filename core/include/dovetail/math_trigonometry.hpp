// dovetail/math_trigonometry.hpp - trigonometric functions, sin and cos below 1 ulp relatively and over the whole
// range, and their inverses. See math.hpp.
#ifndef DOVETAIL_MATH_TRIGONOMETRY_HPP
#define DOVETAIL_MATH_TRIGONOMETRY_HPP

#include "dovetail/math.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
namespace math {
// The bits of 2 / pi after a leading zero word, which arguments below 1 need.
DVT_TABLE uint64_t two_over_pi[] = {
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
};
// 64 of these bits, from bit `at` on.
DVT_FN uint64_t bits_of_two_over_pi(int at) {
  const int word = at / 64, shift = at % 64;
  return two_over_pi[word] << shift | two_over_pi[word + 1] >> 1 >> (63 - shift);
}

// high + low + quadrant pi / 2, |high| <= pi / 4.
template <class T>
struct Angle {
  T high, low;
  uint32_t quadrant;
};

// (high + low) quarter turns in radians.
template <class T>
DVT_FN Angle<T> radians(T high, T low, T quarter, T quarter_low, uint64_t quadrant, bool negative) {
  const Sum<T> p = product(high, quarter);
  const Sum<T> sum = fast_sum(p.high, p.low + fma(high, quarter_low, low * quarter));
  if (negative) return {-sum.high, -sum.low, uint32_t(0 - quadrant)};
  return {sum.high, sum.low, uint32_t(quadrant)};
}

// x modulo pi / 2 for |x| >= 1/2, by Payne and Hanek (1983): only the bits of x 2 / pi that matter are computed,
// two before the point and 62 after it for float32, 126 for float64. The result for infinities and NaN is
// unspecified.
DVT_FN Angle<float> reduce(float x) {
  const uint32_t b = bits(x), magnitude = b & 0x7fffffff;
  const int exponent = int(magnitude >> 23) - 150;  // |x| = m 2^exponent
  const uint64_t m = (magnitude & 0x7fffff) | 0x800000;
  const int at = 64 + exponent - 2;  // the bit that x makes one of weight 2
  const uint64_t turns = m * bits_of_two_over_pi(at) + high_product(m, bits_of_two_over_pi(at + 64));
  const int64_t rest = int64_t(turns << 2) >> 2;  // of a quarter turn, in units of 2^-62
  const float high = float(rest), low = float(rest - int64_t(high));
  return radians(high, low, 0x1.921fb6p-62f, -0x1.777a5cp-87f, (turns + (uint64_t(1) << 61)) >> 62, b >> 31);
}
DVT_FN Angle<double> reduce(double x) {
  const uint64_t b = bits(x), magnitude = b << 1 >> 1;
  const int exponent = int(magnitude >> 52) - 1075;
  const uint64_t m = (magnitude & 0xfffffffffffff) | 0x10000000000000;
  const int at = 64 + exponent - 2;
  const uint64_t upper = bits_of_two_over_pi(at), middle = bits_of_two_over_pi(at + 64),
                 lower = bits_of_two_over_pi(at + 128);
  const uint64_t third = m * lower, p = m * middle, second = p + high_product(m, lower);
  const uint64_t first = m * upper + high_product(m, middle) + (second < p);
  // of a quarter turn: a part with its sign in units of 2^-64, one without in units of 2^-128
  const int64_t top = int64_t(first << 2 | second >> 62);
  const uint64_t tail = second << 2 | third >> 62;
  const Sum<double> sum = fast_sum(double(top >> 32) * 0x1p-32, double(uint32_t(top)) * 0x1p-64);
  const Sum<double> turn = fast_sum(sum.high, sum.low + double(tail) * 0x1p-128);
  return radians(turn.high, turn.low, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                 (first + (uint64_t(1) << 61)) >> 62, b >> 63);
}

// x modulo pi / 2. For small x, n pi / 2 is subtracted in three parts (Cody and Waite, 1980), the first exactly.
template <class T>
DVT_FN Angle<T> angle(T x) {
  if (abs(x) > by_type<T>(0x1p17f, 0x1p28)) return reduce(x);
  constexpr T quarter[] = {by_type<T>(0x1.921fb6p+0f, 0x1.921fb54442d18p+0),
                           by_type<T>(-0x1.777a5cp-25f, 0x1.1a62633145c07p-54),
                           by_type<T>(-0x1.ee59dap-50f, -0x1.f1976b7ed8fbcp-110)};
  const Nearest<T> turns(x, by_type<T>(0x1.45f306p-1f, 0x1.45f306dc9c883p-1));
  const T first = fma(turns.n, -quarter[0], x);
  const Sum<T> second = product(turns.n, -quarter[1]);
  const T sum = first + second.high, added = sum - first;  // either may be the larger one
  const T lost = (first - (sum - added)) + (second.high - added);
  const Sum<T> rest = fast_sum(sum, fma(turns.n, -quarter[2], lost + second.low));
  return {rest.high, rest.low, uint32_t(turns.count)};
}

// (sin(x) / x - 1) / z and (cos(x) - 1 + z / 2) / z^2 as functions of z = x * x, for |x| <= pi / 4
DVT_FN float sin_fit(float z) { return polynomial(z, -0.16666655f, 0.00833216f, -0.00019515242f); }
DVT_FN double sin_fit(double z) {
  return polynomial(z, -0.1666666666666663, 0.008333333333322106, -0.00019841269829579567, 2.7557313617713614e-06,
                    -2.5050747158549198e-08, 1.5896193640858818e-10);
}
DVT_FN float cos_fit(float z) { return polynomial(z, 0.041666646f, -0.0013887316f, 2.4433126e-05f); }
DVT_FN double cos_fit(double z) {
  return polynomial(z, 0.041666666666666595, -0.0013888888888873045, 2.4801587288843667e-05,
                    -2.7557314176717567e-07, 2.0875700461652015e-09, -1.1358515514611788e-11);
}
// The sine and the cosine of an angle. Both are always computed, so that the threads of a warp do not diverge.
template <class T>
struct SinCos {
  T sin, cos;

  DVT_FN explicit SinCos(const Angle<T>& x) {
    const T z = x.high * x.high, half = T(0.5) * z;
    const T odd = x.high + fma(x.high * z, sin_fit(z), fma(x.low, -half, x.low));
    const Sum<T> top = fast_sum(T(1), -half);
    const T even = top.high + (top.low + fma(z * z, cos_fit(z), -x.high * x.low));
    const bool swapped = x.quadrant & 1;
    sin = swapped ? even : odd, cos = swapped ? odd : even;
    if (x.quadrant & 2) sin = -sin;
    if ((x.quadrant + 1) & 2) cos = -cos;
  }
};

// y where x is finite, else NaN.
template <class T>
DVT_FN T of_finite(T x, T y) {
  return abs(x) < infinity<T> ? y : x - x;
}
template <class T>
DVT_FN T sin(T x) {
  return x == 0 ? x : of_finite(x, SinCos<T>(angle(x)).sin);
}
template <class T>
DVT_FN T cos(T x) {
  return of_finite(x, SinCos<T>(angle(x)).cos);
}
template <class T>
DVT_FN T tan(T x) {
  const SinCos<T> of(angle(x));
  return x == 0 ? x : of_finite(x, of.sin / of.cos);
}

template <class T>
inline constexpr T pi = T(3.141592653589793);

// (asin(t) / t - 1) / z as a function of z = t * t, for t <= 1/2
DVT_FN float asin_fit(float z) {
  return polynomial(z, 0.16666752f, 0.07495299f, 0.045470122f, 0.024180906f, 0.04216378f);
}
DVT_FN double asin_fit(double z) {
  return polynomial(z, 0.1666666666666676, 0.07499999999970815, 0.04464285717459778, 0.030381942708432016,
                    0.022372214970034807, 0.017351612320583437, 0.013980816954396673, 0.011398941088760424,
                    0.010780093219812659, 0.0037070057801355176, 0.021706002221317904, -0.020997021263749447,
                    0.03262734537354693);
}
// asin(|x|) for |x| <= 1/2; else asin(sqrt((1 - |x|) / 2)), and asin(|x|) is pi / 2 minus twice that.
template <class T>
struct ReducedAsin {
  bool is_far;
  T value;

  DVT_FN explicit ReducedAsin(T x) {
    const T a = abs(x);
    is_far = a > T(0.5);
    const T t = is_far ? sqrt((1 - a) * T(0.5)) : a;
    value = t + t * (t * t) * asin_fit(t * t);
  }
};
template <class T>
DVT_FN T asin(T x) {
  const ReducedAsin<T> r(x);
  return copysign(r.is_far ? pi<T> / 2 - r.value * 2 : r.value, x);
}
template <class T>
DVT_FN T acos(T x) {
  const ReducedAsin<T> r(x);
  if (!r.is_far) return pi<T> / 2 - copysign(r.value, x);
  return x < 0 ? pi<T> - r.value * 2 : r.value * 2;
}

// (atan(t) / t - 1) / z as a function of z = t * t, for t <= tan(pi / 8)
DVT_FN float atan_fit(float z) {
  return polynomial(z, -0.33333316f, 0.19998471f, -0.14243534f, 0.10593817f, -0.060782198f);
}
DVT_FN double atan_fit(double z) {
  return polynomial(z, -0.333333333333332, 0.19999999999953247, -0.14285714280166653, 0.11111110782160744,
                    -0.09090897725410142, 0.07692059719680192, -0.06663099220149676, 0.05847859317778307,
                    -0.050391902878572536, 0.03806212821163338, -0.0179050184471756);
}
// atan(a) for a >= 0: above tan(pi / 8) pi / 4 + atan((a - 1) / (a + 1)), above tan(3 pi / 8) pi / 2 - atan(1 / a).
template <class T>
DVT_FN T atan_positive(T a) {
  const bool middle = a > T(0.41421356), high = a > T(2.4142135);
  const T t = (high ? T(-1) : middle ? a - 1 : a) / (high ? a : middle ? a + 1 : T(1));
  const T z = t * t, r = t + t * z * atan_fit(z);
  return high ? pi<T> / 2 + r : middle ? pi<T> / 4 + r : r;
}
template <class T>
DVT_FN T atan(T x) {
  return copysign(atan_positive(abs(x)), x);
}
template <class T>
DVT_FN T atan2(T y, T x) {  // zeros and infinities as in C99
  const T ay = abs(y), ax = abs(x);
  const bool steep = ax < ay;
  const T low = steep ? ax : ay, high = steep ? ay : ax;
  const T flat = atan_positive(low != high ? low / high : high == 0 ? high : T(1));
  const T r = steep ? pi<T> / 2 - flat : flat;
  return copysign(copysign(T(1), x) < 0 ? pi<T> - r : r, y);
}
}  // namespace math
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_MATH_TRIGONOMETRY_HPP
