// Derivatives of activations for vectors of doubles.
#pragma once
#include "simd/double_exponential.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles {
// That of x Phi(x), Phi(x) = erfc(-x / sqrt(2)) / 2: Phi(x) + x phi(x), for -|x| first; that for |x| is 1 less it.
DOVETAIL_CPU_INLINE D gelu_slope(D x) {
  constexpr double root_half = 0.7071067811865476, root_half_rest = -4.833646656726457e-17;
  constexpr double phi_0 = 0.3989422804014327, phi_0_rest = -2.49232720227773e-17;
  const D q = stdx::min(abs(x), D(40)), a = q * root_half;
  const D rest = product_rest(q, root_half, a) + q * root_half_rest;
  const D half = 0.5 * q, square = half * q, square_rest = less_product(square, half, q);
  // Both terms are 2^n times what is computed first; n is 0 where a < near_limit.
  const Tail tail = erfc_tail(a, rest, -square, square_rest, tail_of_erfc, middle);
  const auto [n, high, low] = power_of_two(-square, square_rest);
  const D r = high + low, r_rest = (high - r) + low;
  const Sum power = sum(1, r);
  const D power_rest = power.low + (r_rest + r * r * (0.5 + r * power_polynomial(r)));
  const D scaled = q * phi_0, scaled_rest = product_rest(q, phi_0, scaled) + q * phi_0_rest;
  const D density = scaled * power.high;
  const D density_rest =
      product_rest(scaled, power.high, density) + (scaled * power_rest + scaled_rest * power.high);
  const Sum inner = erf_near(a, rest), about = sum(0.5, -0.5 * inner.high);
  const auto near = a < near_limit;
  const D left = select(near, about.high, 0.5 * tail.factor.high);
  const D left_rest = select(near, about.low - 0.5 * inner.low, 0.5 * tail.factor.low);
  const D difference = left - density, taken = left - difference;
  const D lost = (left - (difference + taken)) + (taken - density) + (left_rest - density_rest);
  const D slope = difference + lost;
  const D below = copysign(scale({abs(slope), D(0)}, n), slope);
  return wide::keep_nan(x, select(x < 0, below, 1 - below));
}

// s(z) (1 + y s(-z)), s the sigmoid, by h = e^(-|z|/2): h does not underflow before the result does.
DOVETAIL_CPU_INLINE D gate_slope(D y, wide::Mask negative, D h) {
  const D positive = 1 / (1 + h * h), small = h * positive;
  const D slope = 1 + y * select(negative, positive, h * small);
  return slope * select(negative, h, 1) * select(negative, small, positive);
}
DOVETAIL_CPU_INLINE D silu_slope(D x) {
  const D z = wide::keep_nan(x, wide::clamp(x, -1600, 1600));
  return gate_slope(z, z < 0, exp(-0.5 * abs(z)));
}
DOVETAIL_CPU_INLINE D gelu_tanh_slope(D x) {
  const D y = wide::keep_nan(x, wide::clamp(x, -25, 25));
  const Sum z = gelu_argument(abs(y));
  const D h = exp(-0.5 * z.high) * (1 - 0.5 * z.low);
  return gate_slope(y * (linear + 3 * cubic * (y * y)), y < 0, h);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles
