// dovetail/math_special.hpp - the error function, and x times the distribution function of the normal or logistic
// distribution. See math.hpp.
#ifndef DOVETAIL_MATH_SPECIAL_HPP
#define DOVETAIL_MATH_SPECIAL_HPP

#include "dovetail/math.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
namespace math {
// erf(x) / x - 1 as a function of z = x * x, for x <= 1
DVT_FN float erf_fit(float z) {
  return polynomial(z, 0.12837917f, -0.37612626f, 0.112835854f, -0.026853813f, 0.0051883277f, -0.0008010196f,
                    7.8538775e-05f);
}
DVT_FN double erf_fit(double z) {
  return polynomial(z, 0.1283791670955126, -0.3761263890318375, 0.11283791670954857, -0.02686617064507289,
                    0.0052239776247807995, -0.0008548326978738114, 0.00012055331036751768, -1.4925593503505785e-05,
                    1.6460972766654999e-06, -1.6350024737059115e-07, 1.4657876922765468e-08,
                    -1.1365656041057904e-09, 5.945247254814282e-11);
}
// (u + k) exp(u * u) erfc(u) as a function of t = (u - k) / (u + k), for 0 <= u <= 10.5 (27.6)
DVT_FN float scaled_erfc_fit(float t) {
  return polynomial(t, 1.0740069f, -0.8833945f, 0.59022826f, -0.3104659f, 0.11952939f, -0.02684052f, -0.0012282823f,
                    0.0030810358f, -0.00047967763f, -0.00032350954f);
}
DVT_FN double scaled_erfc_fit(double t) {
  return polynomial(t, 1.08705558926226, -0.9377997245671119, 0.6941136466346453, -0.43525602671689984,
                    0.22573862164736433, -0.09231870663816678, 0.026518619882622097, -0.0031770503468298034,
                    -0.0013053547020062649, 0.0007145317151179073, -4.206210122477106e-05, -7.477720961612213e-05,
                    1.8646945063686516e-05, 7.244439418032585e-06, -3.391433267658474e-06, -7.966973891032291e-07,
                    5.496556275360671e-07, 1.1621717317235532e-07, -8.279844555388139e-08, -2.1595462404393485e-08,
                    8.79509836617883e-09, 3.187503993536864e-09);
}
// exp(u * u) erfc(u) for u = a / unit
template <class T>
DVT_FN T scaled_erfc(T a, T unit) {
  const T k = by_type<T>(3, 3.5) * unit, inverse = 1 / (a + k);
  return scaled_erfc_fit((a - k) * inverse) * (inverse * unit);
}
// exp(-factor a a) for a power of two as factor; the rounding error of the square keeps the tail accurate.
template <class T>
DVT_FN T exp_minus_square(T a, T factor) {
  const Sum<T> square = product(a, a);
  return exp(square.high * -factor, square.low * -factor);
}
// erfc(a) for a >= 0; NaN stays.
template <class T>
DVT_FN T erfc_positive(T a) {
  const T most = by_type<T>(10.5f, 27.5), b = a > most ? most : a;
  return scaled_erfc(b, T(1)) * exp_minus_square(b, T(1));
}
template <class T>
DVT_FN T small_erf(T x) {  // for |x| <= 1
  return fma(x, erf_fit(x * x), x);
}
template <class T>
DVT_FN T erfc(T x) {  // the upper tail is computed directly, never as 1 - erf
  const T tail = erfc_positive(abs(x));
  return abs(x) < T(0.75) ? 1 - small_erf(x) : x < 0 ? 2 - tail : tail;
}
template <class T>
DVT_FN T erf(T x) {
  return abs(x) < 1 ? small_erf(x) : copysign(1 - erfc_positive(abs(x)), x);
}

// x Phi(x), Phi of the normal distribution; the lower tail is computed directly, never as 1 + erf.
template <class T>
DVT_FN T normal_gate(T x) {
  constexpr T root_half = T(0.7071067811865476), root_two = T(1.4142135623730951);
  const T most = by_type<T>(14.5f, 39), a = abs(x) > most ? most : abs(x);
  const T tail = a * scaled_erfc(a, root_two) * T(0.5) * exp_minus_square(a, T(0.5));
  const T near = x * T(0.5) * (1 + small_erf(x * root_half));
  return abs(x) < 1 ? near : x < 0 ? -tail : x - tail;
}
// x sigmoid(z). exp(-|z|) is applied as a square, so that the subnormal tail survives.
template <class T>
DVT_FN T gate(T x, T z) {
  const T half = exp(abs(z) * T(-0.5));
  return (z < 0 ? x * half * half : x) / (1 + half * half);
}
}  // namespace math
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_MATH_SPECIAL_HPP
