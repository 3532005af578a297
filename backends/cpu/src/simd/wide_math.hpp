// Elementary functions for float operands, computed in double: those for which float arithmetic would need
// compensation. Their results are rounded to float once, so the errors are about half an ulp.
//
// Arguments are floats converted to double, or intermediate results of that magnitude: no subnormal doubles.
#pragma once
#include "simd/math.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::wide {
namespace stdx = std::experimental;
using math::polynomial;
using D = stdx::native_simd<double>;
using U = stdx::rebind_simd_t<uint64_t, D>;
using Mask = D::mask_type;
static_assert(D::size() == U::size());
constexpr double infinity = __builtin_inf(), pi = 3.14159265358979323846;
constexpr double magic = 0x1.8p52;  // adding it to a small number puts the rounded integer into the low bits

template <class To, class From>
DOVETAIL_CPU_INLINE To cast(From from) {
  To to;
  static_assert(sizeof to == sizeof from);
  std::memcpy(static_cast<void*>(&to), &from, sizeof to);
  return to;
}
DOVETAIL_CPU_INLINE D select(Mask m, D a, D b) {
  stdx::where(m, b) = a;
  return b;
}
DOVETAIL_CPU_INLINE D abs(D x) { return cast<D>(cast<U>(x) & (~uint64_t{0} >> 1)); }
DOVETAIL_CPU_INLINE D copysign(D magnitude, D sign) {
  constexpr uint64_t top = uint64_t{1} << 63;
  return cast<D>((cast<U>(magnitude) & ~top) | (cast<U>(sign) & top));
}
DOVETAIL_CPU_INLINE Mask is_nan(D x) { return x != x; }
DOVETAIL_CPU_INLINE Mask is_negative(D x) { return copysign(1, x) < 0; }  // also -0

// 2^n for a whole n in [-1022, 1023].
DOVETAIL_CPU_INLINE D power_of_two(D n) { return cast<D>((cast<U>(n + magic) << 52) + (uint64_t{1023} << 52)); }

// (e^x - 1) / x for |x| <= ln 2 / 2
DOVETAIL_CPU_INLINE D exp_core(D x) {
  static constexpr double c[] = {1.0000000000000062,     0.49999999999999084,   0.16666666666557903,
                                 0.0416666666673279,     0.008333333384852096,  0.00138888887474648,
                                 0.00019841171011405678, 2.480168460191334e-05, 2.7639951933461578e-06,
                                 2.756554800659273e-07};
  return polynomial(x, c);
}
// For x in [-700, 700].
DOVETAIL_CPU_INLINE D exp(D x) {
  const D n = (x * 1.4426950408889634 + magic) - magic;
  const D r = (x - n * 0.6931471805598903) - n * 5.497923018708371e-14;
  return (1 + r * exp_core(r)) * power_of_two(n);
}
DOVETAIL_CPU_INLINE D clamp(D x, double low, double high) { return stdx::min(stdx::max(x, D(low)), D(high)); }
DOVETAIL_CPU_INLINE D keep_nan(D x, D y) { return select(is_nan(x), x, y); }

DOVETAIL_CPU_INLINE D exp2(D x) {
  const D y = clamp(x, -300, 300), n = (y + magic) - magic, r = (y - n) * 0.6931471805599453;
  return keep_nan(x, (1 + r * exp_core(r)) * power_of_two(n));
}
// For finite |x| <= 700.
DOVETAIL_CPU_INLINE D expm1_finite(D x) {
  const D near = x * (1 + x * (0.5 + x * (1.0 / 6 + x * (1.0 / 24))));
  return select(abs(x) < 1e-3, near, exp(x) - 1);
}
DOVETAIL_CPU_INLINE D expm1(D x) { return keep_nan(x, expm1_finite(clamp(x, -200, 200))); }

// x = m 2^e with m in [sqrt(1/2), sqrt(2)). For normal positive x.
struct Binary {
  D m, e;
};
DOVETAIL_CPU_INLINE Binary binary(D x) {
  constexpr uint64_t root_half = 0x3fe6a09e667f3bcd, bias = uint64_t{1024} << 52;
  const U e = (cast<U>(x) - root_half + bias) >> 52;  // exponent + 1024
  return {cast<D>(cast<U>(x) - (e << 52) + bias), cast<D>(e | uint64_t{0x4330000000000000}) - (0x1p52 + 1024)};
}
// log x = log_m + e ln 2. For normal positive x.
struct LogParts {
  D log_m, e;
};
DOVETAIL_CPU_INLINE LogParts log_parts(D x) {
  static constexpr double c[] = {0.6666666666658732,  0.4000000005223684, 0.2857141713370126,
                                 0.22223371547209483, 0.1812364284895931, 0.16819861276983264};
  const Binary b = binary(x);
  const D s = (b.m - 1) / (b.m + 1), z = s * s;
  return {s * (2 + z * polynomial(z, c)), b.e};
}
DOVETAIL_CPU_INLINE D log_positive(D x) {
  const LogParts p = log_parts(x);
  return p.log_m + p.e * 0.6931471805599453;
}
// The logarithm where log_parts does not apply: x <= 0, infinite, NaN.
DOVETAIL_CPU_INLINE D log_special(D x, D y) {
  y = select(x == 0, -infinity, y);
  y = select(x < 0, __builtin_nan(""), y);
  return select(is_nan(x) || x == infinity, x, y);
}
DOVETAIL_CPU_INLINE D log2(D x) {
  const LogParts p = log_parts(x);
  return log_special(x, p.log_m * 1.4426950408889634 + p.e);
}
DOVETAIL_CPU_INLINE D log10(D x) {
  const LogParts p = log_parts(x);
  return log_special(x, p.log_m * 0.4342944819032518 + p.e * 0.3010299956639812);
}
// For finite x > -1: corrects the rounding of 1 + x.
DOVETAIL_CPU_INLINE D log1p_finite(D x) {
  const D u = 1 + x;
  return log_positive(u) + (x - (u - 1)) / u;
}
DOVETAIL_CPU_INLINE D log1p(D x) { return select(x == 0, x, log_special(1 + x, log1p_finite(x))); }

DOVETAIL_CPU_INLINE D sinh(D x) {
  const D a = clamp(abs(x), 0, 200), t = expm1_finite(a);
  return keep_nan(x, copysign(0.5 * (t + t / (t + 1)), x));
}
DOVETAIL_CPU_INLINE D cosh(D x) {
  const D e = exp(clamp(abs(x), 0, 200));
  return keep_nan(x, 0.5 * (e + 1 / e));
}
// m / (m + 2), m = e^(2 |x|) - 1
DOVETAIL_CPU_INLINE D tanh(D x) {
  // (e^r - 1) / r for |r| <= ln 2 / 2, to 32 bits
  static constexpr double c[] = {0.9999999999909884,    0.5000000047231083,   0.16666666854058887,
                                 0.041666352404858935,  0.008333268493765382, 0.0013941148819458374,
                                 0.00019915921700638112};
  const D y = 2 * stdx::min(abs(x), D(12)), n = (y * 1.4426950408889634 + magic) - magic;
  const D r = y - n * 0.6931471805599453, scale = power_of_two(n);
  const D m = scale * (r * polynomial(r, c)) + (scale - 1);
  return keep_nan(x, copysign(m / (m + 2), x));
}
DOVETAIL_CPU_INLINE D asinh(D x) {
  const D a = abs(x), y = log1p_finite(stdx::min(a + a * a / (1 + stdx::sqrt(1 + a * a)), D(1e300)));
  return select(a == infinity || is_nan(x), x, copysign(y, x));
}
DOVETAIL_CPU_INLINE D acosh(D x) {
  const D t = stdx::max(x - 1, D(0)), y = log1p_finite(stdx::min(t + stdx::sqrt(t * (t + 2)), D(1e300)));
  return select(x < 1, __builtin_nan(""), select(x == infinity || is_nan(x), x, y));
}
DOVETAIL_CPU_INLINE D atanh(D x) {
  const D a = abs(x), b = select(a < 1, a, 0.5);
  const D y = 0.5 * log1p_finite(2 * b / (1 - b));
  const D z = select(a == 1, infinity, select(a > 1, __builtin_nan(""), y));
  return keep_nan(x, copysign(z, x));
}

DOVETAIL_CPU_INLINE D asin_core(D x) {  // |x| <= 1/2
  static constexpr double c[] = {
      0.16666666666437147, 0.07500000043646961, 0.04464282844989886, 0.030382875651556382,  0.02235487629113687,
      0.01754968201917987, 0.01254789655681735, 0.01794484096959144, -0.007366151894774375, 0.03155871207950722};
  const D z = x * x;
  return x + x * z * polynomial(z, c);
}
DOVETAIL_CPU_INLINE D asin(D x) {
  const D a = abs(x);
  const Mask far = a > 0.5;
  const D y = asin_core(select(far, stdx::sqrt((1 - a) * 0.5), a));
  return copysign(select(far, pi / 2 - 2 * y, y), x);  // beyond 1 the root is NaN
}
DOVETAIL_CPU_INLINE D acos(D x) {
  const D a = abs(x);
  const Mask far = a > 0.5;
  const D y = asin_core(select(far, stdx::sqrt((1 - a) * 0.5), x));
  return select(far, select(x < 0, pi - 2 * y, 2 * y), pi / 2 - y);
}

// atan(low / high) for 0 <= low <= high, high > 0, both finite.
DOVETAIL_CPU_INLINE D atan_ratio(D low, D high) {
  static constexpr double c[] = {-0.33333333331694676, 0.19999999685202174,  -0.14285693572708205,
                                 0.11110449378275872,  -0.09079129309159457, 0.07568477983304342,
                                 -0.05890819486243382, 0.030890993341020623};
  const Mask far = low > 0.4142135623730950 * high;  // beyond tan(pi / 8): turned by pi / 4
  const D t = select(far, low - high, low) / select(far, low + high, high), z = t * t;
  return select(far, pi / 4, 0) + (t + t * z * polynomial(z, c));
}
DOVETAIL_CPU_INLINE D atan(D x) {
  const D a = stdx::min(abs(x), D(1e60));  // added to pi / 2 it is rounded away
  const D y = atan_ratio(stdx::min(a, D(1)), stdx::max(a, D(1)));
  const D inverse = atan_ratio(stdx::min(1 / a, D(1)), D(1));
  return keep_nan(x, copysign(select(a > 1, pi / 2 - inverse, y), x));
}
DOVETAIL_CPU_INLINE D atan2(D y, D x) {
  const D b = stdx::min(abs(y), D(1e300)), a = stdx::min(abs(x), D(1e300));
  const D high = stdx::max(a, b);
  D t = atan_ratio(stdx::min(a, b), select(high == 0, 1, high));
  t = select(b > a, pi / 2 - t, t);
  t = select(is_negative(x), pi - t, t);
  return select(is_nan(x) || is_nan(y), x + y, copysign(t, y));
}

DOVETAIL_CPU_INLINE D erfc(D x) {
  // e^(a^2) erfc a in t = (a - 3) / (a + 3), a in [0, 10.1]
  static constexpr double c[] = {0.17900115118131993,    -0.326233560046328,     0.24560380173284316,
                                 -0.1501159362779617,    0.07166583640079086,    -0.024392503896724767,
                                 0.00426914654185261,    0.0007077904127948579,  -0.0005971153168052832,
                                 4.502994048248864e-05,  6.41525154763955e-05,   -1.2246898201754162e-05,
                                 -7.886435048327779e-06, 1.3426781664689008e-06, 8.292927943838924e-07};
  const D a = stdx::min(abs(x), D(10.1));
  const D y = exp(-a * a) * polynomial((a - 3) / (a + 3), c);
  return keep_nan(x, select(x < 0, 2 - y, y));
}
// x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3)
DOVETAIL_CPU_INLINE D gelu_tanh(D x) {
  constexpr double c = 1.5957691216057308;
  const D y = clamp(x, -13, 13), e = exp(y * (-c - c * 0.044715 * (y * y)));
  return keep_nan(x, select(x < -13, -0.0, x / (1 + e)));
}

// Its derivative, s (1 + x (2 u)' (1 - s)) with s = sigmoid(2 u).
DOVETAIL_CPU_INLINE D gelu_tanh_slope(D x) {
  constexpr double c = 1.5957691216057308;
  const D y = clamp(x, -13, 13), square = y * y, s = 1 / (1 + exp(y * (-c - c * 0.044715 * square)));
  return keep_nan(x, s * (1 + y * (c + 3 * c * 0.044715 * square) * (1 - s)));
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::wide
