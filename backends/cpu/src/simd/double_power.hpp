// x^y of vectors of doubles, as e^(y log x): the logarithm is the sum of two doubles, about 68 bits.
#pragma once
#include <cmath>

#include "simd/double_logarithm.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles {
#if defined(__AVX2__)  // vectors of two numbers would gain little
#define DOVETAIL_CPU_POWER
// c[first] + c[first + 1] x + ...: a shorter chain than that of `polynomial`
template <size_t first = 0, size_t n>
DOVETAIL_CPU_INLINE D in_pairs(D x, D square, const double (&c)[n]) {
  if constexpr (first + 1 == n) {
    return D(c[first]);
  } else {
    const D pair = c[first + 1] * x + c[first];
    if constexpr (first + 2 == n) {
      return pair;
    } else if constexpr (first + 3 == n) {
      return square * c[first + 2] + pair;
    } else {
      const D four = (c[first + 3] * x + c[first + 2]) * square + pair;
      if constexpr (first + 4 == n) return four;
      else return in_pairs<first + 4>(x, square, c) * (square * square) + four;
    }
  }
}
// log(m 2^e), relatively accurate to about 68 bits
DOVETAIL_CPU_INLINE Sum log_sum(const Mantissa& z) {
  constexpr double third = 0.3333333333333333, third_rest = 1.850371707708594e-17;
  const D r = less_product(-1, z.m, look_up_short<intervals::minus_factor>(z.i)), half = 0.5 * r;
  const D whole = z.e * Natural::constants[0] + look_up_short<Natural::first>(z.i);  // exact
  const D small = z.e * Natural::constants[1] + look_up<Natural::second>(z.i);
  const D two_terms = less_product(whole + r, half, r), lost = less_product((whole - two_terms) + r, half, r);

  const D square = multiply_add(r, r, -0.0), cube = multiply_add(square, r, -0.0);
  const D fifth = in_pairs(r, square, intervals::fifth_power);
  const D fourth = multiply_add(r, fifth, -0.25), fourth_rest = multiply_add(r, fifth, -0.25 - fourth);
  const D factor = multiply_add(r, fourth, third);
  const D factor_rest = multiply_add(r, fourth, third - factor) + (r * fourth_rest + third_rest);
  const D minus_cube_rest = less_product(square, r, r) * r + less_product(cube, square, r);
  const D last = multiply_add(cube, factor, -0.0);
  const D last_rest = (cube * factor_rest - minus_cube_rest * factor) - less_product(last, cube, factor);

  const Sum all = sum(two_terms, last);
  const D low = all.low + ((lost + small) + last_rest);
#if defined(__AVX512F__)
  return {all.high, low};
#else
  return sum(all.high, low);  // the first parts of the logarithms have few bits there, so `small` is larger
#endif
}
// e^(high + low) for |high| < 700 and |low| < 2^-30
DOVETAIL_CPU_INLINE D exp_of(D high, D low) {
  constexpr int bits = 52 - index_shift;
  constexpr double steps = 1 << bits;
  const D shifted = high * (steps * 1.4426950408889634) + wide::magic, n = shifted - wide::magic;
  const D r = less_product(high, n, Natural::constants[0] / steps);  // exact
  const D small = low - n * (Natural::constants[1] / steps);
  const U whole = cast<U>(shifted);
  const D power = look_up<intervals::power>(whole), rest = look_up<intervals::power_rest>(whole);
  const D sum = multiply_add(power, r, power), lost = multiply_add(power, r, power - sum);
  const D square = r * r, other = (power * square) * in_pairs(r, square, intervals::exponential);
  const D y = sum + ((sum + other) * small + (other + (rest * r + (lost + rest))));
  return cast<D>(cast<U>(y) + (whole >> bits << 52));
}
constexpr double most = 700;  // e^-most and e^most are normal
// `power` is |x|^y where x and the result are normal; y log |x| = exponent. The C library computes the others.
[[gnu::noinline]] inline D pow_of_any(D x, D y, D exponent, D power) {
  const D a = abs(x);
  const Mask negative = x < 0, no_number = negative && stdx::floor(y) != y;
  stdx::where(negative && stdx::floor(0.5 * y) != 0.5 * y, power) = -power;
  stdx::where(no_number, power) = __builtin_nan("");
  const Mask done = a >= least && a < infinity && (no_number || abs(exponent) < most);
  for (size_t i = 0; i < D::size(); ++i)
    if (!done[i]) power[i] = ::pow(x[i], y[i]);
  return power;
}
DOVETAIL_CPU_INLINE D pow(D x, D y) {
  const Sum log = log_sum(mantissa(abs(x)));
  const D high = y * log.high, low = y * log.low - less_product(high, y, log.high);
  const D power = exp_of(high, low);
  if (are_normal(x) && stdx::all_of(abs(high) < most)) [[likely]]
    return power;
  return pow_of_any(x, y, high, power);
}
#endif
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles
