// Elementary functions by tables of 8 numbers, each in a register of 32 bytes, as table_math.hpp has them by 32.
#pragma once
#include <immintrin.h>

#include "simd/lanes.hpp"
#include "simd/tables.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::math {
// table[i % 8]
DOVETAIL_CPU_INLINE V look_up(const float (&table)[8], U i) {
  return V(_mm256_permutevar8x32_ps(_mm256_loadu_ps(table), static_cast<__m256i>(i)));
}
DOVETAIL_CPU_INLINE U look_up(const uint32_t (&table)[8], U i) {
  const __m256i entries = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(table));
  return U(_mm256_permutevar8x32_epi32(entries, static_cast<__m256i>(i)));
}
// c[0] + c[1] x + ..., of which table `first` has c[0].
template <size_t first, size_t n>
DOVETAIL_CPU_INLINE V look_up_polynomial(const float (&table)[n][8], U i, V x) {
  if constexpr (first + 1 == n) return look_up(table[first], i);
  else return multiply_add(look_up_polynomial<first + 1>(table, i, x), x, look_up(table[first], i));
}

// x = n ln 2 + r, n a multiple of 1/8: e^x = 2^n (1 + p(r)). The bits of `shifted` end in those of 8 (n + bias).
struct Power {
  V shifted, n, high, r;  // high: r without n times the rest of ln 2, exact
};
constexpr float minus_log2_rest = 1.90465421e-09f;
template <int bias>
DOVETAIL_CPU_INLINE Power power_of_two(V x) {
  constexpr float magic = 0x1.8p20f + bias;  // the last place of what is added to it is 1/8
  const V shifted = multiply_add(x, 1.44269504f, magic), n = shifted - magic;
  const V high = multiply_add(n, -0.693147182f, x);
  return {shifted, n, high, multiply_add(n, minus_log2_rest, high)};
}
// e^r - 1 with `first` in place of r's first power.
DOVETAIL_CPU_INLINE V power_polynomial(V r, V first) {
  const V q = multiply_add(multiply_add(r, 0.0416686609f, 0.166678637f), r, 0.5f);
  return multiply_add(r * r, q, first);
}
// The same with what rounding took from 2^n, and rounded less often: all but the largest term are added first.
DOVETAIL_CPU_INLINE V power_polynomial(const Power& p) {
  const V rest = look_up(tables::eighth_powers_rest, bits(p.shifted));
  return p.high + power_polynomial(p.r, multiply_add(p.n, minus_log2_rest, rest));
}
// 2^n of a number n of eighths in `shifted`, `exponent` the bits of n 2^23 less those of 102 2^23.
DOVETAIL_CPU_INLINE V power(U shifted, U exponent) {
  return from_bits(look_up(tables::eighth_powers, shifted) + exponent);
}

// e^x, for x in [-87, 88] only, where the result is normal.
DOVETAIL_CPU_INLINE V exp_normal(V x) {
  const Power p = power_of_two<127 - 102>(x);
  const U n = bits(p.shifted);
  const V y = power(n, n << 20), low = look_up(tables::eighth_powers_rest, n);
  return multiply_add(y, power_polynomial(p.r, p.r + low), y);
}
// 2^n in two factors, each with half of the exponent. The second is 0 for n < -150, where the result will be: to
// compute that would be slow (table_math.hpp). `more` is added to the second's exponent, for smaller n.
struct Factors {
  V fraction, whole;
};
constexpr int both_biases = 2 * 127 - 102;
DOVETAIL_CPU_INLINE Factors factors(V shifted, uint32_t more = 0) {
  const U n = bits(shifted), half = ((n << 19) & 0xff800000u) + (more << 23);
  return {power(n, (n << 20) - half), from_bits(half)};
}
// e^(x + rest) / n, for `scale`: x in [-126, 0], |rest| small.
DOVETAIL_CPU_INLINE V exp_scaled(V x, V rest, V& n) {
  const Power p = power_of_two<both_biases>(x);
  const auto [y, whole] = factors(p.shifted, 16);
  const V r = p.r + rest;
  n = whole;
  return multiply_add(y, power_polynomial(r, r), y);
}
DOVETAIL_CPU_INLINE V scale(V y, V n) { return y * n; }
DOVETAIL_CPU_INLINE V exp(V x) {
  if (stdx::all_of(abs(x) < 87)) [[likely]] {
    const Power p = power_of_two<127 - 102>(x);
    const U n = bits(p.shifted);
    const V y = power(n, n << 20);
    return multiply_add(y, power_polynomial(p), y);
  }
  const Power p = power_of_two<both_biases>(clamp_number(x, -105, 89));
  const auto [y, whole] = factors(p.shifted);
  return multiply_add(y, power_polynomial(p), y) * whole;
}
DOVETAIL_CPU_INLINE V exp_finite(V x) { return exp(x); }

// log(x 2^n) for normal positive x.
DOVETAIL_CPU_INLINE V log_normal(V x, I n) {
  static constexpr float c[] = {-0.5f, 0.333332658f, -0.249999404f, 0.200701922f, -0.167280897f};
  const U steps = bits(x) - tables::first_logarithm, i = steps >> 20;
  const V m = from_bits(bits(x) - (steps & 0xff800000u));
  const V e = stdx::static_simd_cast<V>((bits<I>(from_bits(steps)) >> 23) + n);
  const V r = multiply_add(m, look_up(tables::eight_logarithms[0], i), -1);
  const V high = multiply_add(e, 0.693145752f, look_up(tables::eight_logarithms[1], i));  // exact
  const V low = multiply_add(e, 1.42860677e-6f, look_up(tables::eight_logarithms[2], i));
  const V sum = high + r, lost = (high - sum) + r;
  return sum + (lost + multiply_add(r * r, polynomial(r, c), low));
}
DOVETAIL_CPU_INLINE V log(V x) {
  const auto is_normal = bits<I>(from_bits(bits(x) + 0x7f800000u)) < -0x01000000;  // and positive
  if (stdx::all_of(is_normal)) [[likely]]
    return log_normal(x, 0);
  const Mask small = x < 1.17549435e-38f;
  const V e = select(small, -23, 0);
  V y = log_normal(select(small, x * 8388608.f, x), stdx::static_simd_cast<I>(e));
  y = select(x == 0, -infinity, y);
  y = select(x < 0, __builtin_nanf(""), y);
  return select(is_nan(x) || x == infinity, x, y);
}

// The number of x's interval, that as an index, and the distance from its middle.
struct Interval {
  V number;
  U index;
  V d;
};
DOVETAIL_CPU_INLINE Interval interval_of(V x, float width) {
  constexpr float magic = 0x1.8p23f;
  const V shifted = multiply_add(x, 1 / width, magic), number = shifted - magic;
  return {number, bits(shifted), multiply_add(number, -width, x)};
}

DOVETAIL_CPU_INLINE V erf(V x) {
  const V a = at_most(3.925f, abs(x));
  const auto [number, i, d] = interval_of(a, tables::erf_width);
  const V factor = select(number < 2, a, 1);
  const V rest = look_up_polynomial<1>(tables::eight_erf_by_x, i, d);
  return with_sign(erf_or_tiny(a, multiply_add(factor, look_up(tables::eight_erf_by_x[0], i), factor * rest)), x);
}

// x Phi(x) for |x| < `normal_limit`.
constexpr float normal_limit = 7.4f * tables::normal_width;
DOVETAIL_CPU_INLINE V gelu_near(V x) {
  const V q = abs(x);
  const Interval at = interval_of(q, tables::normal_width);
  return at_least(0, x) - q * look_up_polynomial<0>(tables::eight_normal, at.index, at.d);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::math
