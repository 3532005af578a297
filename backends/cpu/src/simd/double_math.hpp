// Elementary functions of vectors of doubles, for double operands: about half an ulp. What rounding takes from the
// larger terms is added with the smaller ones.
#pragma once
#include "simd/wide_math.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles {
using wide::abs;
using wide::copysign;
using wide::D;
using wide::is_nan;
using wide::select;
namespace stdx = wide::stdx;

// c - a b, rounded once: where a b is near c.
DOVETAIL_CPU_INLINE D less_product(D c, D a, D b) {
#if defined(__AVX512F__)
  return D(_mm512_fnmadd_pd(static_cast<__m512d>(a), static_cast<__m512d>(b), static_cast<__m512d>(c)));
#elif defined(__AVX2__)
  return D(_mm256_fnmadd_pd(static_cast<__m256d>(a), static_cast<__m256d>(b), static_cast<__m256d>(c)));
#elif defined(__aarch64__)
  return D(vfmsq_f64(static_cast<float64x2_t>(c), static_cast<float64x2_t>(a), static_cast<float64x2_t>(b)));
#else
  const auto upper = [](D x) { return wide::cast<D>(wide::cast<wide::U>(x) & ~uint64_t{0x7ffffff}); };
  const D p = a * b, a_high = upper(a), b_high = upper(b), a_low = a - a_high, b_low = b - b_high;
  return (c - p) - (((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low);
#endif
}
// a b + c, rounded once: where a b is near -c.
DOVETAIL_CPU_INLINE D multiply_add(D a, D b, D c) {
#if defined(__AVX512F__)
  return D(_mm512_fmadd_pd(static_cast<__m512d>(a), static_cast<__m512d>(b), static_cast<__m512d>(c)));
#elif defined(__AVX2__)
  return D(_mm256_fmadd_pd(static_cast<__m256d>(a), static_cast<__m256d>(b), static_cast<__m256d>(c)));
#elif defined(__aarch64__)
  return D(vfmaq_f64(static_cast<float64x2_t>(c), static_cast<float64x2_t>(a), static_cast<float64x2_t>(b)));
#else
  return less_product(c, -a, b);
#endif
}
DOVETAIL_CPU_INLINE D product_rest(D a, D b, D product) { return -less_product(product, a, b); }
// c[first] + c[first + 1] x + ..., in two chains: even and odd powers.
template <size_t k, size_t n>
DOVETAIL_CPU_INLINE D every_other(D square, const double (&c)[n]) {
  if constexpr (k + 2 >= n) return D(c[k]);
  else return every_other<k + 2>(square, c) * square + c[k];
}
template <size_t first = 0, size_t n>
DOVETAIL_CPU_INLINE D polynomial(D x, const double (&c)[n]) {
  const D square = x * x;
  return every_other<first + 1>(square, c) * x + every_other<first>(square, c);
}

// high + low, |low| at most about an ulp of high
struct Sum {
  D high, low;
};
// a + b for |a| >= |b|
DOVETAIL_CPU_INLINE Sum sum(D a, D b) {
  const D high = a + b;
  return {high, (a - high) + b};
}
// a + b c for |a| >= |b c|
DOVETAIL_CPU_INLINE Sum sum_with_product(D a, D b, D c) {
  const D high = multiply_add(b, c, a);
  return {high, multiply_add(b, c, a - high)};
}

// e^(x + rest) = 2^n e^r, r = high + low.
struct Power {
  D n, high, low;
};
DOVETAIL_CPU_INLINE Power power_of_two(D x, D rest) {
  const D n = (x * 1.4426950408889634 + wide::magic) - wide::magic;
  return {n, x - n * 0.6931471805598903, rest - n * 5.497923018708371e-14};  // high: exact
}
// (e^r - 1 - r - r^2 / 2) / r^3 for |r| <= ln 2 / 2
DOVETAIL_CPU_INLINE D power_polynomial(D r) {
  static constexpr double c[] = {0.16666666666666669,    0.041666666666666664,   0.008333333333330039,
                                 0.0013888888888886537,  0.00019841269863171557, 2.4801587317228724e-05,
                                 2.7557268276905696e-06, 2.7557282838800484e-07, 2.5100472505694996e-08,
                                 2.09112987659402e-09};
  return polynomial(r, c);
}

// e^r
DOVETAIL_CPU_INLINE Sum exponential(const Power& p) {
  const D r = p.high + p.low, half = 0.5 * r, square = half * r;
  const Sum one = sum(1, p.high), two = sum(one.high, square);
  const D low = (one.low + two.low) + (((p.high - r) + p.low) * r + (product_rest(half, r, square) + p.low));
  return sum(two.high, (square * r) * (2 * power_polynomial(r)) + low);
}
// 2^n (high + low) for high in [1/2, 2) and n in [-1080, 1024]
DOVETAIL_CPU_INLINE D scale(Sum factor, D n) {
  if (stdx::all_of(n > -1010 && n < 1023)) [[likely]]
    return (factor.high + factor.low) * wide::power_of_two(n);
  const D large = (2 * (factor.high + factor.low)) * wide::power_of_two(stdx::max(n - 1, D(-1010)));
  // Some result may be subnormal: 2^1000 times it is rounded to multiples of 2^-74, the last place of `unit`.
  constexpr double unit = 0x1p-22;
  const D power = wide::power_of_two(stdx::min(n + 1000, D(0))), y = factor.high * power;
  const Sum shifted = sum(unit, y);
  const D subnormal = (shifted.high + (shifted.low + factor.low * power)) - unit;
  return select(n > -1010, large, select(y < unit, subnormal, (factor.high + factor.low) * power) * 0x1p-1000);
}

// From here on erfc < 1/2.
constexpr double near_limit = 0.477;
// erf(a + rest) for |a| <= near_limit, as high + low with low up to 1/12 of high.
DOVETAIL_CPU_INLINE Sum erf_near(D a, D rest) {
  static constexpr double c[] = {-0.37612638903183754,   0.112837916709551,      -0.026866170645104014,
                                 0.0052239776243227015,  -0.0008548326792781157, 0.00012055306252594572,
                                 -1.4923827486228955e-5, 1.6389390291205426e-6,  -1.4786787853202602e-7};
  constexpr double slope = 1.1283791670955126, slope_rest = 1.533545961316588e-17;
  const D square = a * a, high = a * slope;
  const D low = product_rest(a, slope, high) + (a * slope_rest + rest * slope);
  return {high, low + (a * square) * polynomial(square, c)};
}

// (shift + 2 a) e^(a^2) erfc a in t = (a - middle) / (a + middle)
constexpr double shift = 1.375, middle = 3.0625, middle_of_erf = 4;
// For a in [near_limit, 27.3]; at t = 0 it is nearly a double.
inline constexpr double tail_of_erfc[] = {
    1.3174789350193825,      -0.2569900563319286,    0.04938890820965564,    0.06859060252657001,
    -0.09148351231495563,    0.06149372062347989,    -0.025022320714391474,  0.00437872272120981,
    0.001329825292542042,    -0.0008910057954236506, 9.794811706767859e-06,  0.00012328525984249368,
    -1.4512597307777569e-05, -1.834591079415759e-05, 2.8039492164015086e-06, 3.1685387898530713e-06,
    -3.58383344278905e-07,   -6.056746196235427e-07, 1.66284050233873e-08,   1.1169668499731516e-07,
    3.694529327628809e-09,   -1.4159938963689346e-08};
// For a in [near_limit, 5.95], where what is left of 1 matters.
inline constexpr double tail_of_erf[] = {1.2843699152468075,    -0.23677163449451252,   0.09739954562840313,
                                         0.006500548256775729,  -0.06017644227447205,   0.07007555080222296,
                                         -0.05455964986158687,  0.0324535689523193,     -0.0144404853719368,
                                         0.005134757967226765,  -0.0002544988584279055, 0.0002983990439754681,
                                         0.0004323632133287901, 7.955724241880456e-05};

// erfc(a + rest) = 2^n (high + low); square + square_rest = -(a + rest)^2.
struct Tail {
  D n;
  Sum factor;
};
template <size_t n>
DOVETAIL_CPU_INLINE Tail erfc_tail(D a, D rest, D square, D square_rest, const double (&c)[n], double middle) {
  const D t = (a - middle) / (a + middle);
  const Sum q = sum_with_product(c[0], t, polynomial<2>(t, c) * t + c[1]);
  const Power p = power_of_two(square, square_rest);
  const Sum e = exponential(p);
  const D above = e.high * q.high;
  const D above_rest = product_rest(e.high, q.high, above) + (e.high * q.low + e.low * q.high);
  const D whole = 2 * a + shift;
  const Sum below = {whole, 2 * a - (whole - shift)};  // `shift` has few bits: exact, whichever is the larger
  const D inverse = 1 / below.high, quotient = above * inverse;
  const D remainder = less_product(above, quotient, below.high) + (above_rest - quotient * (below.low + 2 * rest));
  return {p.n, {quotient, remainder * inverse}};
}

DOVETAIL_CPU_INLINE D erfc(D x) {
  const D a = stdx::min(abs(x), D(27.3)), square = a * a;
  const Tail tail = erfc_tail(a, 0, -square, less_product(square, a, a), tail_of_erfc, middle);
  const D far = scale(tail.factor, tail.n);
  const Sum inner = erf_near(copysign(a, x), 0), near = sum(1, -inner.high);
  return wide::keep_nan(x, select(a < near_limit, near.high + (near.low - inner.low), select(x < 0, 2 - far, far)));
}
DOVETAIL_CPU_INLINE D erf(D x) {
  const D a = stdx::min(abs(x), D(6)), square = a * a;
  const Tail tail = erfc_tail(a, 0, -square, less_product(square, a, a), tail_of_erf, middle_of_erf);
  const D power = wide::power_of_two(tail.n);
  const Sum near = erf_near(a, 0), far = sum(1, -(power * tail.factor.high));
  const D y = select(a < near_limit, near.high + near.low, far.high + (far.low - power * tail.factor.low));
  return wide::keep_nan(x, copysign(y, x));
}

// x Phi(x), Phi(x) = erfc(-x / sqrt(2)) / 2. Its tail keeps its relative accuracy.
DOVETAIL_CPU_INLINE D gelu(D x) {
  constexpr double root_half = 0.7071067811865476, root_half_rest = -4.833646656726457e-17;
  const D q = stdx::min(abs(x), D(38.7)), a = q * root_half;
  const D rest = product_rest(q, root_half, a) + q * root_half_rest;
  const D half = 0.5 * q, square = half * q;
  const Tail tail = erfc_tail(a, rest, -square, less_product(square, half, q), tail_of_erfc, middle);
  const auto negative = x < 0, near = a < near_limit;
  const D power = 0.5 * wide::power_of_two(stdx::max(tail.n, D(-1000)));
  const Sum inner = erf_near(a, rest), far = sum(1, -(power * tail.factor.high));
  const Sum about = sum(0.5, select(negative, -0.5, 0.5) * inner.high);
  D high = select(negative, 0.5 * tail.factor.high, far.high);
  D low = select(negative, 0.5 * tail.factor.low, far.low - power * tail.factor.low);
  high = select(near, about.high, high);
  low = select(near, about.low + select(negative, -0.5, 0.5) * inner.low, low);
  const D y = q * high;
  const D result = scale({y, product_rest(q, high, y) + q * low}, select(negative && !near, tail.n, 0));
  return select(is_nan(x) || x > 38, x, copysign(result, x));
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles
