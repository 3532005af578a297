// pow of floats, computed in double: 2^(y log2 |x|) to 40 bits, rounded to float once.
#pragma once
#include "simd/wide_math.hpp"
#if defined(__AVX512F__)
#include "simd/tables.hpp"
#endif

namespace dovetail::cpu::DOVETAIL_CPU_ISA::wide {
#if defined(__AVX512F__)
// table[i % 16]
DOVETAIL_CPU_INLINE D look_up(const double (&table)[16], U i) {
  return D(_mm512_permutex2var_pd(_mm512_loadu_pd(table), static_cast<__m512i>(i), _mm512_loadu_pd(table + 8)));
}
// Polynomials are computed in pairs of terms: the time that one number takes is the limit, not the instructions.
//
// log2 x = e + log2 m: a factor brings m near 1. x >= 0 or NaN; for 0 it is so large that its product with any
// float but 0 is, too, and finite. Infinite for infinity.
DOVETAIL_CPU_INLINE D log2_to_40_bits(D x) {
  static constexpr double c[] = {1.4426950408889874,  -0.7213475204464496, 0.4808983465811164,
                                 -0.3606737463463138, 0.28853984249361697, -0.2404784614774457,
                                 0.20577439220446953, -0.16206168174034688};
  const D m(_mm512_getmant_pd(static_cast<__m512d>(x), _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src));
  const D e(_mm512_max_pd(_mm512_set1_pd(-0x1p800), _mm512_getexp_pd(static_cast<__m512d>(x))));  // NaN stays NaN
  const U i = cast<U>(m) >> 48;
  const D r = m * look_up(math::tables::log2_factors, i) - 1;  // exact
  const D square = r * r, low = (c[0] + c[1] * r) + (c[2] + c[3] * r) * square,
          high = (c[4] + c[5] * r) + (c[6] + c[7] * r) * square;
  return r * (low + high * (square * square)) + (e + look_up(math::tables::log2_parts, i));
}
// 2^x; NaN where x is infinite.
DOVETAIL_CPU_INLINE D exp2_of_finite(D x) {
  static constexpr double c[] = {0.6931471805599453, 0.24022650691319414, 0.05550410866027587, 0.009618317140580765,
                                 0.0013333744338239965};
  constexpr double sixteenths = 0x1.8p48;  // the last place of what is added to it is 1/16
  const D shifted = x + sixteenths, n = shifted - sixteenths, r = x - n, square = r * r;
  const D power = look_up(math::tables::sixteenth_powers, cast<U>(shifted));
  const D rest = r * ((c[0] + c[1] * r) + square * ((c[2] + c[3] * r) + square * c[4]));
  return D(_mm512_scalef_pd(static_cast<__m512d>(power + power * rest), static_cast<__m512d>(n)));
}
DOVETAIL_CPU_INLINE D exp2_to_40_bits(D x) { return exp2_of_finite(keep_nan(x, clamp(x, -300, 300))); }
#else
// Infinite for 0 and infinity.
DOVETAIL_CPU_INLINE D log2_to_40_bits(D x) {
  static constexpr double c[] = {2.885390081777851,   0.9617966941122649,  0.5770779426603044,
                                 0.41220922406110433, 0.31990680380701336, 0.2828850234074824};
  const Binary b = binary(x);
  const D s = (b.m - 1) / (b.m + 1), y = s * polynomial(s * s, c) + b.e;
  return select(x == 0, -infinity, select(x < infinity, y, x));  // NaN stays NaN
}
DOVETAIL_CPU_INLINE D exp2_to_40_bits(D x) {
  static constexpr double c[] = {0.6931471805599453,    0.2402265069581299,     0.055504108664760424,
                                 0.009618129159402558,  0.0013333558179043112,  0.00015403455852453838,
                                 1.525268684626772e-05, 1.3255224878668817e-06, 1.0203121063391729e-07};
  const D y = clamp(x, -300, 300), n = (y + magic) - magic, r = y - n;
  return keep_nan(x, (1 + r * polynomial(r, c)) * power_of_two(n));
}
DOVETAIL_CPU_INLINE D exp2_of_finite(D x) { return exp2_to_40_bits(x); }
#endif

// x^y where x is negative or 2^(y log2 |x|), which `power` is, is NaN.
DOVETAIL_CPU_INLINE D special_power(D x, D y, D power) {
  const D a = abs(x), half = y * 0.5;
  // A negative base needs an integer exponent; an odd one keeps the sign. All doubles from 2^53 on are even.
  const Mask whole = stdx::floor(y) == y, odd = whole && stdx::floor(half) != half, negative = is_negative(x);
  power = select(negative && odd, -power, power);
  power = select(negative && !whole && a != 0 && a != infinity, __builtin_nan(""), power);
  power = select(is_nan(x), x, power);
  return select(y == 0 || x == 1 || (a == 1 && abs(y) == infinity), 1, power);
}
DOVETAIL_CPU_INLINE D pow(D x, D y) {
  const D exponent = y * log2_to_40_bits(abs(x)), power = exp2_of_finite(exponent);
  const Mask undefined = is_nan(power);
  if (stdx::any_of(is_negative(x) || undefined)) [[unlikely]]
    return special_power(x, y, stdx::any_of(undefined) ? exp2_to_40_bits(exponent) : power);
  return power;
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::wide
