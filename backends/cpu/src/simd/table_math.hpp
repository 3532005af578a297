// Elementary functions by tables of 32 numbers, each in two registers of 64 bytes. What decides is how few
// instructions there are: an interval's polynomial is short, and its constant term has a second float, so that the
// result's error is half an ulp and little more.
#pragma once
#include <immintrin.h>

#include "simd/lanes.hpp"
#include "simd/tables.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::math {
// table[i % 32]
DOVETAIL_CPU_INLINE V look_up(const float (&table)[32], U i) {
  return V(_mm512_permutex2var_ps(_mm512_loadu_ps(table), static_cast<__m512i>(i), _mm512_loadu_ps(table + 16)));
}
// c[0] + c[1] x + ..., of which table `first` has c[0].
template <size_t first, size_t n>
DOVETAIL_CPU_INLINE V look_up_polynomial(const float (&table)[n][32], U i, V x) {
  if constexpr (first + 1 == n) return look_up(table[first], i);
  else return look_up_polynomial<first + 1>(table, i, x) * x + look_up(table[first], i);
}
// y * 2^n, n rounded down; rounded once if the result is subnormal.
DOVETAIL_CPU_INLINE V scale(V y, V n) {
  return V(_mm512_scalef_ps(static_cast<__m512>(y), static_cast<__m512>(n)));
}

// x = n ln 2 + r, n a multiple of 1/32, whose low bits index `powers`: e^x = 2^(n rounded down) powers (1 + p(r)).
struct Power {
  V n, r;
  U index;
};
DOVETAIL_CPU_INLINE Power power_of_two(V x) {
  constexpr float magic = 0x1.8p18f;  // the last place of what is added to it is 1/32
  const V shifted = x * 1.44269504f + magic, n = shifted - magic;
  return {n, multiply_add(n, 1.90465421e-09f, multiply_add(n, -0.693147182f, x)), bits(shifted)};
}
DOVETAIL_CPU_INLINE V power_polynomial(V r) { return r + r * r * (r * 0.166667155f + 0.500002444f); }

// e^(x + rest) / 2^n, for `scale`: x in [-126, 0], |rest| small.
DOVETAIL_CPU_INLINE V exp_scaled(V x, V rest, V& n) {
  const Power p = power_of_two(x);
  n = p.n;
  const V y = look_up(tables::powers[0], p.index);
  return y + y * power_polynomial(p.r + rest);
}
// e^x, for x in [-87, 88] only, where the result is normal.
DOVETAIL_CPU_INLINE V exp_normal(V x) {
  const Power p = power_of_two(x);
  const V y = look_up(tables::powers[0], p.index);
  return scale(y + y * power_polynomial(p.r), p.n);
}
// e^x for x <= 89, or NaN. What becomes 0 is not computed: processors take a hundred times as long where a result
// is too small for a normal number.
DOVETAIL_CPU_INLINE V exp_finite(V x) {
  const Power p = power_of_two(x);
  const V high = look_up(tables::powers[0], p.index);
  const V y = high + (high * power_polynomial(p.r) + look_up(tables::powers[1], p.index));
  const __mmask16 kept = _mm512_cmp_ps_mask(static_cast<__m512>(x), _mm512_set1_ps(-104), _CMP_NLT_UQ);
  return V(_mm512_maskz_scalef_ps(kept, static_cast<__m512>(y), static_cast<__m512>(p.n)));
}
DOVETAIL_CPU_INLINE V exp(V x) { return exp_finite(at_most(89, x)); }

DOVETAIL_CPU_INLINE V log(V x) {
  static constexpr float c[] = {-0.5f, 0.333333334f, -0.250001763f, 0.200020924f, -0.161299575f};
  const __m512 y = static_cast<__m512>(x);
  const V m(_mm512_getmant_ps(y, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan));  // NaN where x < 0
  const U i = bits(m) >> 18;
  const V n(_mm512_getexp_ps(y));
  const V r = multiply_add(m, look_up(tables::logarithms[0], i), -1);
  const V high = n * 0.693145752f + look_up(tables::logarithms[1], i);  // exact
  const V low = n * 1.42860677e-6f + look_up(tables::logarithms[2], i);
  const V sum = high + r, result = sum + (((high - sum) + r) + (r * r * polynomial(r, c) + low));
  constexpr int zero = 0x06, positive_infinity = 0x08;
  return V(_mm512_mask_mov_ps(static_cast<__m512>(result), _mm512_fpclass_ps_mask(y, zero | positive_infinity),
                              static_cast<__m512>(n)));
}

// 1 / (1 + e^-x), by e^-|x|: relative accuracy in both tails. A quotient by Newton's method takes less time than a
// division; its remainder counts what rounding took from 1 + e, too.
DOVETAIL_CPU_INLINE V sigmoid(V x) {
  const V e = exp_finite(minus_abs(x)), below = 1 + e, lost = (1 - below) + e, above = select(x < 0, e, 1);
  const V guess(_mm512_rcp14_ps(static_cast<__m512>(below)));
  const V inverse = guess + guess * (1 - below * guess), quotient = above * inverse;
  return quotient + inverse * ((above - quotient * below) - quotient * lost);
}

DOVETAIL_CPU_INLINE V erf(V x) {
  constexpr float magic = 0x1.8p20f;  // the last place of what is added to it is 1/8
  const V a = at_most(3.925f, abs(x)), shifted = a + magic, d = a - (shifted - magic);
  const U i = bits(shifted);
  const V rest = look_up_polynomial<1>(tables::erf_by_x, i, d);
  const V y = multiply_add(a, look_up(tables::erf_by_x[0], i), a * rest);
  return with_sign(erf_or_tiny(a, y), x);
}

// Eight intervals an octave of x + 1 in [1, 16): index and the distance of x from the middle.
struct Interval {
  U index;
  V d;
};
DOVETAIL_CPU_INLINE Interval interval_of(V x) {
  const U w = bits(multiply_add(x, 1 - 0x1p-23f, 1));  // not so near 1 that a number below it seems to be above
  return {w >> 20, x - (from_bits((w & 0xfff00000u) | 0x00080000u) - 1)};
}

// x times a polynomial, from 1 on the polynomial; with what rounding takes from its constant and linear term.
DOVETAIL_CPU_INLINE V tanh(V x) {
  const V a = at_most(9.2f, abs(x)), factor = at_most(1, a);
  const auto [i, d] = interval_of(a);
  const V constant = look_up(tables::tanh[0], i), slope = look_up(tables::tanh[2], i);
  const V sum = multiply_add(d, slope, constant), lost = multiply_add(d, slope, constant - sum);
  const V rest = lost + look_up(tables::tanh[1], i) + d * look_up_polynomial<3>(tables::tanh, i, d);
  return with_sign(at_most(a, multiply_add(factor, sum, factor * rest)),
                   x);  // a: where subnormal it would round twice
}

// x Phi(x) for |x| < `normal_limit`.
constexpr float normal_limit = 3.875f;
DOVETAIL_CPU_INLINE V gelu_near(V x) {
  constexpr float magic = 0x1.8p21f;  // the last place of what is added to it is 1/4
  const V shifted = x + magic, d = x - (shifted - magic);
  const U i = bits(shifted);
  return multiply_add(x, look_up(tables::normal[0], i), x * look_up_polynomial<1>(tables::normal, i, d));
}
// Phi(-q) e^(q^2/2) for q in [0, 14.9].
DOVETAIL_CPU_INLINE V normal_tail_factor(V q) {
  const auto [i, d] = interval_of(q);
  return look_up_polynomial<0>(tables::normal_tail, i, d);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::math
