// Elementary functions of vectors of doubles, for double operands: about half an ulp. They need fused multiply-add.
#pragma once
#include "simd/wide_math.hpp"

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles {
using wide::D;
using wide::stdx::fma;

// m / (m + 2), m = e^(2 |x|) - 1; m and m + 2 are sums of two doubles each.
DOVETAIL_CPU_INLINE D tanh(D x) {
  // (e^r - 1 - r - r^2 / 2) / r^3 for |r| <= ln 2 / 2
  static constexpr double c[] = {0.16666666666666669,    0.041666666666666664,   0.008333333333330039,
                                 0.0013888888888886537,  0.00019841269863171557, 2.4801587317228724e-05,
                                 2.7557268276905696e-06, 2.7557282838800484e-07, 2.5100472505694996e-08,
                                 2.09112987659402e-09};
  const D y = 2 * wide::stdx::min(wide::abs(x), D(22)), n = (y * 1.4426950408889634 + wide::magic) - wide::magic;
  const D high = fma(n, D(-0.6931471805598903), y), low = n * -5.497923018708371e-14,
          r = high + low;  // high: exact
  const D half = 0.5 * r, square = half * r, square_rest = fma(half, r, -square);
  const D cube = fma(square * r, 2 * wide::polynomial(r, c), square_rest + low);
  const D power = wide::power_of_two(n), less = power - 1;
  const D first = less + power * high, second = power * square, sum = first + second;
  const D lost = (power * high - (first - less)) + (second - (sum - first)), rest = lost + power * cube;
  const D m = sum + rest, m_rest = rest - (m - sum);
  const D below = m + 2, two = below - m, below_rest = ((2 - two) + (m - (below - two))) + m_rest;
  const D inverse = 1 / below, quotient = m * inverse;
  const D remainder = fma(-quotient, below, m) + (m_rest - quotient * below_rest);
  return wide::keep_nan(x, wide::copysign(fma(remainder, inverse, quotient), x));
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles
#endif
