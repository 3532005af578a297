// exp, log and sin below 1 ulp. SYCL promises 3 and more for its own in float32, and devices differ; float64 is
// theirs. The coefficients are minimax fits of our own, as in the CPU backend; nothing here needs float64.
#pragma once
#include "kernels/common/kernel.hpp"

namespace xpu::math {
template <class T>
inline constexpr T infinity = T(__builtin_inff());

// c[0] + c[1] x + c[2] x^2 + ...
template <class T, int n>
T polynomial(T x, const T (&c)[n]) {
  T y = c[n - 1];
  for (int k = n - 2; k >= 0; --k) y = sycl::fma(y, x, c[k]);
  return y;
}

// y * 2^n for |n| <= 250, rounded once where the result is subnormal.
inline float scale(float y, int n) {
  const int half = n >> 1;
  return y * sycl::bit_cast<float>((half + 127) << 23) * sycl::bit_cast<float>((n - half + 127) << 23);
}

inline float exp(float x) {
  constexpr float c[] = {0.5f, 0.166666657f, 0.0416662805f, 0.00833350513f, 0.00139457465f, 0.000197886606f};
  if (x != x) return x;
  x = sycl::fmin(sycl::fmax(x, -104.0f), 89.0f);
  const float n = sycl::rint(x * 1.44269504f);
  // ln 2 in two parts; n times the first is exact
  const float r = sycl::fma(n, -1.42860677e-6f, sycl::fma(n, -0.693145752f, x));
  return scale(1 + sycl::fma(r * r, polynomial(r, c), r), int(n));
}
inline double exp(double x) { return sycl::exp(x); }

inline float log(float x) {
  constexpr float c[] = {0.333333135f,  -0.250000089f, 0.200021178f,  -0.166679874f, 0.142195642f,
                         -0.124056987f, 0.118882f,     -0.116751947f, 0.0674608797f};
  if (x != x || x == infinity<float>) return x;
  if (x == 0) return -infinity<float>;
  if (x < 0) return __builtin_nanf("");
  const bool small = x < 1.17549435e-38f;
  const uint32_t bits = sycl::bit_cast<uint32_t>(small ? x * 8388608.0f : x);
  // m * 2^e with m in [sqrt(1/2), sqrt(2))
  constexpr uint32_t root_half = 0x3f3504f3, bias = 128u << 23;
  const uint32_t e = (bits - root_half + bias) >> 23;  // exponent + 128
  const float m = sycl::bit_cast<float>(bits - (e << 23) + bias) - 1;
  const float n = float(int(e) - (small ? 23 + 128 : 128));
  const float low = sycl::fma(n, 1.42860677e-6f, m * m * sycl::fma(m, polynomial(m, c), -0.5f));
  return sycl::fma(n, 0.693145752f, m + low);
}
inline double log(double x) { return sycl::log(x); }
}  // namespace xpu::math
