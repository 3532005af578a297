// The error function, and products with the distribution function of the normal or logistic distribution: below the
// tolerances of the schema, whose bodies have the same fits.
#pragma once
#include "kernels/common/math.hpp"

namespace xpu::math {
// erf(x) / x - 1 of z = x * x, x <= 1
inline float erf_fit(float z) {
  constexpr float c[] = {0.128379166f,   -0.376126258f,    0.112835851f,   -0.0268538119f,
                         0.00518832768f, -0.000801019357f, 7.85386116e-05f};
  return polynomial(z, c);
}
inline double erf_fit(double z) {
  constexpr double c[] = {0.1283791670955126,      -0.3761263890318375,     0.11283791670954879,
                          -0.026866170645076792,   0.0052239776248180145,   -0.000854832698083379,
                          0.0001205533111164271,   -1.4925595266831182e-05, 1.6461000484121368e-06,
                          -1.6350312701054695e-07, 1.4659775274047436e-08,  -1.1372848856791674e-09,
                          5.957176147748911e-11};
  return polynomial(z, c);
}

// exp(u * u) erfc(u) of u = a / unit, 0 <= u <= 10.5 for float32, <= 27.5 for float64
inline float erfcx(float a, float unit) {
  constexpr float c[] = {1.2769784f,      -0.0927639974f, -0.166031572f,  0.164055654f,   -0.0542026209f,
                         -0.00806088706f, 0.00862535418f, 0.00131256796f, -0.0012223383f, -0.000396104245f};
  const float k = 2 * unit;
  return polynomial((a - k) / (a + k), c) / (1 + a * (2 / unit));
}
inline double erfcx(double a, double unit) {
  constexpr double c[] = {
      1.2329951186255526,     -0.13962111684056286,   0.015379652102620996,    0.06809705425473468,
      -0.10103906603636773,   0.0937328349968727,     -0.06633036581115447,    0.03716751556148306,
      -0.016197734063710445,  0.005031969762284736,   -0.0007577733091379332,  -0.00019925552619520982,
      0.00015062210715057866, -2.440316536962711e-05, -1.1224436722701745e-05, 5.718019430428633e-06,
      3.00822697160671e-07,   -8.355403600708081e-07, 6.309931892048124e-08,   1.1579545491817747e-07,
      -7.770852409868655e-09, -1.387063343675277e-08, -1.8822551750393533e-09};
  const double k = 4 * unit;
  return polynomial((a - k) / (a + k), c) / (1 + a * (2 / unit));
}

// The upper half of the digits: its square is exact.
inline float upper(float x) { return sycl::bit_cast<float>(sycl::bit_cast<uint32_t>(x) & 0xfffff000u); }
inline double upper(double x) { return sycl::bit_cast<double>(sycl::bit_cast<uint64_t>(x) & 0xfffffffff8000000u); }

// y exp(-factor a a), accurate in its tail
template <class T>
T times_exp_minus_square(T y, T a, T factor) {
  const T high = upper(a), low = a - high;
  return y * exp(low * (a + high) * -factor) * exp(high * high * -factor);
}

// x, but at most `most`; NaN stays.
template <class T>
T capped(T x, T most) {
  return x > most ? most : x;
}

template <class T>
T erf(T x) {
  const T a = sycl::fabs(x);
  if (a < 1) return x + x * erf_fit(a * a);
  const T b = capped(a, sizeof(T) == 8 ? T(27.5) : T(10.5));
  return sycl::copysign(1 - times_exp_minus_square(erfcx(b, T(1)), b, T(1)), x);
}

// x Phi(x) of the normal distribution; its lower tail directly, never as 1 + erf.
template <class T>
T normal_gate(T x) {
  const T a = capped(sycl::fabs(x), sizeof(T) == 8 ? T(39) : T(14.5));
  const T tail = times_exp_minus_square(a * erfcx(a, T(1.4142135623730951)) * T(0.5), a, T(0.5));
  return x < 0 ? -tail : x - tail;
}

// x sigmoid(z); exp(-|z|) comes as two halves, so that the subnormal tail survives.
template <class T>
T gate(T x, T z) {
  const T half = exp(sycl::fabs(z) * T(-0.5));
  return (z < 0 ? x * half * half : x) / (1 + half * half);
}
}  // namespace xpu::math
