// exp and what follows from it, of vectors of doubles: about half an ulp for exp, exp2 and cosh, one for the
// others.
#pragma once
#include "simd/double_math.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles {
constexpr double nothing = -746, too_large = 710;  // where e^x is 0, and infinite

DOVETAIL_CPU_INLINE D exp(D x) {
  const Power p = power_of_two(wide::clamp(x, nothing, too_large), 0);
  return wide::keep_nan(x, scale(exponential(p), p.n));
}
DOVETAIL_CPU_INLINE D exp2(D x) {
  constexpr double ln2 = 0.6931471805599453, ln2_rest = 2.3190468138462996e-17;
  const D y = wide::clamp(x, -1080, 1024), n = (y + wide::magic) - wide::magic, f = y - n, high = f * ln2;
  return wide::keep_nan(x, scale(exponential({n, high, product_rest(f, ln2, high) + f * ln2_rest}), n));
}

// (e^x - 1) / 4, for x from -40 to where sinh is infinite: twice it is finite.
DOVETAIL_CPU_INLINE Sum quarter_expm1(D x) {
  const Power p = power_of_two(x, 0);
  const D r = p.high + p.low, half = 0.5 * r, square = half * r;
  const D cube = (square * r) * (2 * power_polynomial(r)) + (product_rest(half, r, square) + p.low);
  const D power = wide::power_of_two(p.n - 2), less = power - 0.25;
  const D first = less + power * p.high, second = power * square, all = first + second;
  const D lost = ((power - less) - 0.25) + (power * p.high - (first - less)) + (second - (all - first));
  return sum(all, lost + power * cube);
}
constexpr double huge = 710.5;  // sinh and cosh are infinite
// f(x) = y with the sign of x, where f(x) is about x near 0
DOVETAIL_CPU_INLINE D odd(D x, D y) { return select(abs(x) < 0x1p-54 || is_nan(x), x, copysign(y, x)); }

DOVETAIL_CPU_INLINE D expm1(D x) {
  const Sum m = quarter_expm1(wide::clamp(x, -40, huge));
  return odd(x, 4 * (m.high + m.low));
}
DOVETAIL_CPU_INLINE D sinh(D x) {
  const Sum m = quarter_expm1(stdx::min(abs(x), D(huge)));
  const D inverse = 1 / (4 * m.high + 1), other = m.high * inverse;  // (1 - e^-x) / 4
  return odd(x, 2 * (m.high + (other + (m.low + m.low * inverse * inverse))));
}
DOVETAIL_CPU_INLINE D cosh(D x) {
  const Power p = power_of_two(stdx::min(abs(x), D(huge)), 0);
  const Sum e = exponential(p);
  const D power = wide::power_of_two(p.n - 2), high = power * e.high;
  const Sum both = sum(high, 0.0625 / high);
  return wide::keep_nan(x, 2 * (both.high + (both.low + power * e.low)));
}

// m / (m + 2), m = e^(2 |x|) - 1: a quarter of each is the sum of two doubles.
DOVETAIL_CPU_INLINE D tanh(D x) {
  const Sum m = quarter_expm1(2 * stdx::min(abs(x), D(22)));
  const D below = m.high + 0.5, half = below - m.high;
  const D below_rest = ((0.5 - half) + (m.high - (below - half))) + m.low;
  const D inverse = 1 / below, quotient = m.high * inverse;
  const D remainder = less_product(m.high, quotient, below) + (m.low - quotient * below_rest);
  return odd(x, quotient + remainder * inverse);
}

// a / (1 + e), or a e / (1 + e), for e = 2^n e^r in (0, 1] and a > 0. The latter is scaled last: e may be
// subnormal.
DOVETAIL_CPU_INLINE D gated(D a, wide::Mask by_e, const Power& p) {
  const Sum factor = exponential(p);
  const D e = (factor.high + factor.low) * wide::power_of_two(stdx::max(p.n, D(-1000)));
  const D below = 1 + e, below_rest = e - (below - 1), inverse = 1 / below, product = a * factor.high;
  const D above = select(by_e, product, a);
  const D rest = select(by_e, product_rest(a, factor.high, product) + a * factor.low, 0);
  const D quotient = above * inverse,
          remainder = less_product(above, quotient, below) + (rest - quotient * below_rest);
  return scale({quotient, remainder * inverse}, select(by_e, p.n, 0));
}
DOVETAIL_CPU_INLINE D sigmoid(D x) {
  return wide::keep_nan(x, gated(1, x < 0, power_of_two(-stdx::min(abs(x), D(-nothing)), 0)));
}
DOVETAIL_CPU_INLINE D silu(D x) {
  const D a = stdx::min(abs(x), D(760));
  return select(is_nan(x) || x > 40, x, copysign(gated(a, x < 0, power_of_two(-a, 0)), x));
}
// linear a + cubic a^3 = 2 sqrt(2 / pi) (a + 0.044715 a^3), for a >= 0
constexpr double linear = 1.5957691216057308, cubic = 0.07135481627260025;
DOVETAIL_CPU_INLINE Sum gelu_argument(D a) {
  constexpr double linear_rest = -9.96930880911092e-17, cubic_rest = -6.175149918155315e-19;
  const D square = a * a, product = square * cubic, lost = product_rest(square, cubic, product);
  const D factor = linear + product, added = factor - linear;  // either may be the larger
  const D rest = ((linear - (factor - added)) + (product - added)) + lost;
  const D factor_rest = rest + (linear_rest + product_rest(a, a, square) * cubic + square * cubic_rest);
  const D z = a * factor;
  return {z, product_rest(a, factor, z) + a * factor_rest};
}
DOVETAIL_CPU_INLINE D gelu_tanh(D x) {
  const D a = stdx::min(abs(x), D(22));
  const Sum z = gelu_argument(a);
  return select(is_nan(x) || x > 22, x, copysign(gated(a, x < 0, power_of_two(-z.high, -z.low)), x));
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles
