// Trigonometry of vectors of doubles, at most 0.53 ulp: whatever is large in a result is a sum of two doubles.
//
// For levels with fused multiply-add, where the rounding error of a product is one instruction. Without, it takes
// ten: then asin and acos take 1.6 times as long as the C library's, atan as long, sin and cos 0.75 times.
#pragma once
#include <cmath>

#include "simd/double_math.hpp"
#include "simd/math_loops.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles {
using wide::Mask;
using wide::U;

// x with its sign changed where the top bit of `bits` is set.
DOVETAIL_CPU_INLINE D change_sign(D x, U bits) {
  return wide::cast<D>(wide::cast<U>(x) ^ (bits & (uint64_t{1} << 63)));
}

DOVETAIL_CPU_INLINE Sum select(Mask m, Sum a, Sum b) {
  return {wide::select(m, a.high, b.high), wide::select(m, a.low, b.low)};
}

// y, with f(x...) by the C library in the lanes that are not `ordinary`.
template <auto f, class... Given>
[[gnu::noinline, gnu::cold]] D by_library(Mask ordinary, D y, Given... x) {
  [[maybe_unused]] const math::ExtendedPrecision precision{};
  for (size_t i = 0; i < D::size(); ++i)
    if (!ordinary[i]) y[i] = f(double(x[i])...);
  return y;
}
// y where `ordinary`, elsewhere f(x...) by the C library: a lane has the same result whatever is in the others.
template <auto f, class... Given>
DOVETAIL_CPU_INLINE D unless_ordinary(Mask ordinary, D y, Given... x) {
  if (stdx::all_of(ordinary)) [[likely]]
    return y;
  return by_library<f>(ordinary, y, x...);
}

// c[first] + c[first + 1] x + ..., `count` terms, by Estrin's scheme; power[k] is x^(2^k). Its chain of dependent
// instructions is shorter than that of polynomial().
template <size_t first, size_t count, size_t n>
DOVETAIL_CPU_INLINE D by_halves(const D (&power)[4], const double (&c)[n]) {
  if constexpr (count == 1) return D(c[first]);
  else {
    constexpr int k = count > 8 ? 3 : count > 4 ? 2 : count > 2 ? 1 : 0;
    constexpr size_t lower = size_t{1} << k;
    return by_halves<first + lower, count - lower>(power, c) * power[k] + by_halves<first, lower>(power, c);
  }
}
// z^2 c[0] + z^3 (c[1] + c[2] z + ...) + rest; adding the largest term last loses least.
template <size_t n>
DOVETAIL_CPU_INLINE D higher_powers(D z, const double (&c)[n], D rest) {
  const D fourth = z * z, eighth = fourth * fourth, power[] = {z, fourth, eighth, eighth * eighth};
  return fourth * c[0] + ((fourth * z) * by_halves<1, n - 1>(power, c) + rest);
}
// r^2
DOVETAIL_CPU_INLINE Sum square(Sum r) {
  const D high = r.high * r.high;
  return {high, multiply_add(r.high, r.high, -high) + 2 * r.high * r.low};
}
// r (1 + first z + v) for z = r^2 <= 0.62, where higher(rest) = v + rest. `slope` is the derivative of first z + v
// by z, to 2^-6.
template <class F>
DOVETAIL_CPU_INLINE Sum odd_series(Sum r, Sum z, double first, D slope, F higher) {
  const D u = first * z.high, v = higher(multiply_add(first, z.high, -u) + slope * z.low);
  const D high = multiply_add(r.high, u, r.high), lost = multiply_add(r.high, u, r.high - high);
  return {high, r.high * v + (r.low * u + (r.low + lost))};
}
template <size_t n>
DOVETAIL_CPU_INLINE Sum odd_series(Sum r, Sum z, double first, const double (&c)[n]) {
  const auto higher = [&](D rest) __attribute__((always_inline)) { return higher_powers(z.high, c, rest); };
  return odd_series(r, z, first, first + 2 * c[0] * z.high, higher);
}
// a / b, for b.low of at most an ulp of b.high
DOVETAIL_CPU_INLINE Sum quotient(Sum a, Sum b) {
  const D inverse = 1 / b.high, high = a.high * inverse;
  return {high, (less_product(a.high, high, b.high) + (a.low - high * b.low)) * inverse};
}

// a = r + n unit, |r| <= unit / 2; n is in the low bits of `turns`.
struct Angle {
  Sum r;
  U turns;
};
constexpr double limit = 1e6;  // of a: n times the first part of the unit is exact
// The first of the parts has 33 bits, or 30 for the smaller unit; the others are 53 bits each.
struct Unit {
  double inverse, parts[3];
};
DOVETAIL_CPU_INLINE Angle reduce(D a, const Unit& unit) {
  const auto& [first, second, third] = unit.parts;
  const D shifted = a * unit.inverse + wide::magic, n = shifted - wide::magic;
  const D most = a - n * first, less = n * second, less_rest = multiply_add(n, second, -less) + n * third;
  const D r = most - less;
  return {{r, ((most - r) - less) - less_rest}, wide::cast<U>(shifted)};
}
constexpr Unit quadrant = {2 / wide::pi, {1.5707963267341256, 6.077100506506192e-11, 3.5215598651832e-27}};
DOVETAIL_CPU_INLINE Sum sin_core(Sum r, Sum z) {
  static constexpr double c[] = {0.008333333333333042,    -0.0001984126984096247, 2.7557319073976383e-06,
                                 -2.5052070917160807e-08, 1.6054309978357957e-10, -7.389321479379236e-13};
  return odd_series(r, z, -0.16666666666666666, c);
}
DOVETAIL_CPU_INLINE Sum cos_core(Sum z) {
  static constexpr double c[] = {0.041666666666666595,   -0.0013888888888873333, 2.4801587288992877e-05,
                                 -2.755731421355529e-07, 2.0875704833231912e-09, -1.1358716270379075e-11};
  const D half = 0.5 * z.high, high = 1 - half, rest = ((1 - high) - half) + (2 * c[0] * z.high - 0.5) * z.low;
  return {high, higher_powers(z.high, c, rest)};
}
DOVETAIL_CPU_INLINE Mask is_odd(U n) { return wide::cast<D>((n & 1) << 62) > 0; }

DOVETAIL_CPU_INLINE D sin(D x) {
  const D a = abs(x);
  const Angle angle = reduce(a, quadrant);
  const Sum z = square(angle.r), y = select(is_odd(angle.turns), cos_core(z), sin_core(angle.r, z));
  const D signed_y = change_sign(y.high + y.low, (angle.turns << 62) ^ wide::cast<U>(x));
  return unless_ordinary<static_cast<double (*)(double)>(::sin)>(a <= limit, signed_y, x);
}
DOVETAIL_CPU_INLINE D cos(D x) {
  const D a = abs(x);
  const Angle angle = reduce(a, quadrant);
  const Sum z = square(angle.r), y = select(is_odd(angle.turns), sin_core(angle.r, z), cos_core(z));
  const D signed_y = change_sign(y.high + y.low, (angle.turns + 1) << 62);
  return unless_ordinary<static_cast<double (*)(double)>(::cos)>(a <= limit, signed_y, x);
}
#if defined(__AVX512F__)
DOVETAIL_CPU_INLINE D look_up(const double (&table)[16], U index) {  // by its low 4 bits
  const auto low = _mm512_load_pd(table), high = _mm512_load_pd(table + 8);
  return D(_mm512_permutex2var_pd(low, static_cast<__m512i>(index), high));
}
alignas(64) inline constexpr double tan_above[] = {
    0.0,  0.15099722352476874, 0.2507576484396452,  0.5122812678825426,
    0.5,  0.7666830976185963,  1.210765031463552,   3.036457220109696,
    1.0,  -3.036457220109696,  -1.210765031463552,  -0.7666830976185963,
    -0.5, -0.5122812678825426, -0.2507576484396452, -0.15099722352476874,
};
alignas(64) inline constexpr double tan_below[] = {
    1.0, 0.759114305027424,  0.605382515731776,  0.7666830976185963,
    0.5, 0.5122812678825426, 0.5015152968792904, 0.603988894099075,
    0.0, 0.603988894099075,  0.5015152968792904, 0.5122812678825426,
    0.5, 0.7666830976185963, 0.605382515731776,  0.759114305027424,
};
// tan(r + n pi / 16) = (p + q tan r) / (q - p tan r), where p / q = tan(n pi / 16) to 85 bits.
DOVETAIL_CPU_INLINE D tan(D x) {
  static constexpr Unit unit = {16 / wide::pi,
                                {0.19634954072535038, 1.2401169746006755e-10, 2.0557821170405322e-27}};
  static constexpr double c[] = {0.33333333333334086, 0.13333333332228536, 0.05396825923056044, 0.02186839515279911,
                                 0.008966237463706384};
  const D a = abs(x);
  const Angle angle = reduce(a, unit);
  const D p = look_up(tan_above, angle.turns), q = look_up(tan_below, angle.turns);
  const D r = angle.r.high, z = r * r;
  const Sum t = sum(r, (r * z) * polynomial(z, c) + angle.r.low);
  const D above = multiply_add(q, t.high, p), below = less_product(q, p, t.high);
  const Sum y = quotient({above, multiply_add(q, t.high, p - above) + q * t.low},
                         {below, less_product(q - below, p, t.high) - p * t.low});
  const D signed_y = change_sign(y.high + y.low, wide::cast<U>(x));
  return unless_ordinary<static_cast<double (*)(double)>(::tan)>(a <= limit, signed_y, x);
}
#else
DOVETAIL_CPU_INLINE D tan(D x) {
  const D a = abs(x);
  const Angle angle = reduce(a, quadrant);
  const Sum z = square(angle.r), s = sin_core(angle.r, z), c = cos_core(z);
  const Mask odd = is_odd(angle.turns);
  const Sum below = select(odd, s, c), y = quotient(select(odd, c, s), sum(below.high, below.low));
  const D signed_y = change_sign(y.high + y.low, (angle.turns << 63) ^ wide::cast<U>(x));
  return unless_ordinary<static_cast<double (*)(double)>(::tan)>(a <= limit, signed_y, x);
}
#endif

constexpr double half_pi = 1.5707963267948966, half_pi_rest = 6.123233995736766e-17;
// base + y for |y| <= |base|, or base = 0
DOVETAIL_CPU_INLINE D add(Sum base, Sum y) {
  const Sum z = sum(base.high, y.high);
  return z.high + (z.low + (y.low + base.low));
}

// -sqrt(x), and half of its inverse to 2^-27
struct Root {
  D root, half_inverse;
};
DOVETAIL_CPU_INLINE Root negative_root(D x) {
#if defined(__AVX512F__)
  // Multiplications take less time than the processor's square root and division.
  const __m512d v = static_cast<__m512d>(x);
  const D inverse = -D(_mm512_maskz_rsqrt14_pd(_mm512_cmp_pd_mask(v, _mm512_setzero_pd(), _CMP_NEQ_UQ), v));
  const D guess = x * inverse, half = 0.5 * inverse, error = 0.5 - guess * half;
  const D better = guess + guess * error, half_inverse = half + half * error;
  return {better + less_product(x, better, better) * half_inverse, half_inverse};
#else
  const D root = -stdx::sqrt(x);
  return {root, 0.5 / stdx::min(root, D(-1e-200))};
#endif
}
// asin a for a <= 1/2, and asin a - pi / 2 = -2 asin(sqrt((1 - a) / 2)) beyond (`far`), are r (1 + z / 6 + ...).
// z is a^2 or (1 - a) / 2.
struct ArcSine {
  Mask far;
  Sum r, z;
};
DOVETAIL_CPU_INLINE ArcSine halve(D a) {
  const D twice = 2 - 2 * a, near_square = a * a, near_rest = multiply_add(a, a, -near_square);
  const auto [root, half_inverse] = negative_root(twice);
  const Mask far = a > 0.5;
  return {far, select(far, {root, less_product(twice, root, root) * half_inverse}, {a, 0}),
          select(far, {0.5 - 0.5 * a, 0}, {near_square, near_rest})};
}
DOVETAIL_CPU_INLINE D asin_of(D x, Mask far, Sum series) {
  return copysign(add(select(far, {half_pi, half_pi_rest}, {0, 0}), series), x);
}
DOVETAIL_CPU_INLINE D acos_of(D x, Mask far, Sum series) {
  const Sum base = select(x < 0, {2 * half_pi, 2 * half_pi_rest}, {0, 0});
  const U sign = ~wide::cast<U>(x);
  return add(select(far, base, {half_pi, half_pi_rest}),
             {change_sign(series.high, sign), change_sign(series.low, sign)});
}
inline constexpr double asin_terms[] = {0.07499999999990897,  0.044642857158603146,  0.030381943375209105,
                                        0.022372198223130236, 0.017351885315091825,  0.01397780767543968,
                                        0.011421813652947714, 0.010660028063980751,  0.004134594118519489,
                                        0.020719627089299926, -0.019667320736335783, 0.031832009146904615};
// Several vectors at once, as the instructions of one wait for each other.
template <bool cosine, int n>
DOVETAIL_CPU_INLINE void asin_or_acos(D (&x)[n]) {
  constexpr double first = 0.16666666666666666;
  const auto each = [](auto step) __attribute__((always_inline)) {
    for_each_constant(step, std::make_integer_sequence<int, n>());
  };
  ArcSine y[n];
  D square[n], even[n], odd[n];
  each([&]<int k>() __attribute__((always_inline)) {
    y[k] = halve(abs(x[k]));
    square[k] = y[k].z.high * y[k].z.high, even[k] = asin_terms[10], odd[k] = asin_terms[11];
  });
  for_each_constant(
      [&]<int pair>() __attribute__((always_inline)) {
        each([&]<int k>() __attribute__((always_inline)) {
          even[k] = even[k] * square[k] + asin_terms[8 - 2 * pair],
          odd[k] = odd[k] * square[k] + asin_terms[9 - 2 * pair];
        });
      },
      std::make_integer_sequence<int, 5>());
  each([&]<int k>() __attribute__((always_inline)) {
    const auto higher = [&](D rest) __attribute__((always_inline)) {
      return square[k] * (odd[k] * y[k].z.high + even[k]) + rest;
    };
    const Sum series = odd_series(y[k].r, y[k].z, first, first, higher);
    x[k] = cosine ? acos_of(x[k], y[k].far, series) : asin_of(x[k], y[k].far, series);
  });
}
template <int n>
DOVETAIL_CPU_INLINE void asin(D (&x)[n]) {
  asin_or_acos<false>(x);
}
template <int n>
DOVETAIL_CPU_INLINE void acos(D (&x)[n]) {
  asin_or_acos<true>(x);
}

#if defined(__AVX512F__)
// atan a = atan c + atan((a - c) / (1 + a c)), c and atan c by table: c is near a and such that atan c is almost a
// double. 16 intervals, the first up to 3/32 with c = 0, two of each octave, and the last from 12 on. They are
// ordered by the lowest bit of the exponent and the highest of the fraction, among 4 bits: 1/16 has 6.
alignas(64) inline constexpr double atan_centers[] = {2.414213562374996,
                                                      3.434057830059887,
                                                      4.807987240800154,
                                                      6.8600570957852725,
                                                      9.604121959738269,
                                                      24.041594578811797,
                                                      0.0,
                                                      0.10934861907581456,
                                                      0.15610118710177845,
                                                      0.2185463135072523,
                                                      0.3113914953811127,
                                                      0.43606951246764797,
                                                      0.618033988750425,
                                                      0.8672954016951726,
                                                      1.219803902719553,
                                                      1.7231796783285185};
alignas(64) inline constexpr double atan_angles[] = {1.1780972450964509,
                                                     1.2874317180332988,
                                                     1.3657326565242864,
                                                     1.4260444908142573,
                                                     1.46704821357731,
                                                     1.5292257108507097,
                                                     0.0,
                                                     0.10891588785270266,
                                                     0.1548514722713322,
                                                     0.21516330656140648,
                                                     0.3018746666989543,
                                                     0.4112091396359455,
                                                     0.5535743588974289,
                                                     0.7144496360954261,
                                                     0.8840959433227891,
                                                     1.0449712205207486};
struct Center {
  D tangent, angle;
};
DOVETAIL_CPU_INLINE Center center_of(D a) {  // for a < 16
  const U index = wide::cast<U>(D(_mm512_max_pd(static_cast<__m512d>(a), _mm512_set1_pd(0.0625)))) >> 51;
  return {look_up(atan_centers, index), look_up(atan_angles, index)};
}
// atan t - t.high for |t| <= 0.1
DOVETAIL_CPU_INLINE D atan_rest(Sum t) {
  static constexpr double c[] = {-0.33333333333333287, 0.19999999999907458, -0.14285714224212268,
                                 0.11111092329150836,  -0.0908800743433583, 0.07471197282098627};
  const D z = t.high * t.high, fourth = z * z, power[] = {z, fourth, fourth * fourth, fourth};
  return (t.high * z) * by_halves<0, 6>(power, c) + t.low;
}
DOVETAIL_CPU_INLINE D atan(D x) {
  const __m512d all = static_cast<__m512d>(abs(x));
  const D a(_mm512_min_pd(_mm512_set1_pd(0x1p100), all));  // without infinity, with NaN
  const auto [tangent, angle] = center_of(D(_mm512_min_pd(all, _mm512_set1_pd(15))));
  const D below = multiply_add(a, tangent, 1), below_rest = multiply_add(a, tangent, 1 - below);
  const Sum t = quotient({a - tangent, 0}, {below, below_rest}), y = sum(angle, t.high);
  return copysign(y.high + (y.low + atan_rest(t)), x);
}
// turns pi / 2 + atan(low / high) for 0 <= low <= high and turns in {-2, -1, 0, 1}
DOVETAIL_CPU_INLINE D atan_of_ratio(D turns, D low, D high) {
  const auto [tangent, angle] = center_of(low * D(_mm512_rcp14_pd(static_cast<__m512d>(high))));
  const D part = tangent * high, part_rest = multiply_add(tangent, high, -part);
  const D below = multiply_add(tangent, low, high), below_rest = multiply_add(tangent, low, high - below);
  const Sum t = quotient({low - part, -part_rest}, {below, below_rest});
  const Sum base = sum(turns * half_pi, angle), y = sum(base.high, t.high);
  return y.high + (y.low + ((base.low + turns * half_pi_rest) + atan_rest(t)));
}
#else
// atan of a / b for |a / b| <= 1/2
DOVETAIL_CPU_INLINE Sum atan_core(Sum a, Sum b) {
  static constexpr double c[] = {0.19999999999997325,   -0.14285714285283602,  0.11111111082014687,
                                 -0.09090908007868652,  0.07692282598609385,   -0.06666279927154652,
                                 0.05878235162749729,   -0.052322584898773845, 0.04597447417958793,
                                 -0.037303420983568994, 0.023904294416501683,  -0.008515013930269726};
  const Sum t = quotient(a, b);
  return odd_series(t, square(t), -0.3333333333333333, c);
}
DOVETAIL_CPU_INLINE D atan(D x) {
  const D a = wide::select(abs(x) > 1e300, 1e300, abs(x));
  const Mask far = a > 0.5, farther = a > 2;  // turned by pi / 4, pi / 2
  const D next = a + 1, next_rest = a - (next - 1);
  const D above = select(farther, -1, select(far, a - 1, a));
  const D below = select(farther, a, select(far, next, 1));
  const Sum y = atan_core({above, 0}, {below, select(far && !farther, next_rest, 0)});
  const Sum base = select(far, {0.5 * half_pi, 0.5 * half_pi_rest}, {0, 0});
  return copysign(add(select(farther, {half_pi, half_pi_rest}, base), y), x);
}
DOVETAIL_CPU_INLINE D atan_of_ratio(D turns, D low, D high) {
  const Mask far = low > 0.5 * high;  // turned by pi / 4
  const D both = low + high, all = turns + select(far, 0.5, 0), base = all * half_pi;
  const Sum below = {select(far, both, high), select(far, (high - both) + low, 0)};
  const Sum t = atan_core({select(far, low - high, low), 0}, below);
  return add({base, multiply_add(all, half_pi, -base) + all * half_pi_rest}, t);
}
#endif
DOVETAIL_CPU_INLINE D atan2(D y, D x) {
  const D b = abs(y), a = abs(x);
  const Mask swap = b > a, negative = x < 0;
  const D low = select(swap, a, b), high = select(swap, b, a);
  // With a = |x|, b = |y|: pi / 2 - atan(a / b), and pi minus the angle for negative x; y has the sign.
  const D turns = select(swap, select(negative, 1, -1), select(negative, -2, 0));
  const D angle = copysign(atan_of_ratio(turns, low, high), y);
  // No intermediate result is infinite or subnormal.
  const Mask ordinary = a <= 1e150 && b <= 1e150 && select(low == 0, high, low) >= 1e-150;
  return unless_ordinary<static_cast<double (*)(double, double)>(::atan2)>(ordinary, angle, y, x);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles
