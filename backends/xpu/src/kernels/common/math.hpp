// exp, log and sin below 1 ulp. SYCL promises 3 and more for its own in float32, and devices differ; float64 is
// theirs. The coefficients are minimax fits of our own, as in the CPU backend; nothing here needs float64.
#pragma once
#include "kernels/common/kernel.hpp"

namespace xpu::math {
template <class T>
inline constexpr T infinity = T(__builtin_inff());

// c[0] + c[1] x + c[2] x^2 + ...
template <int n>
float polynomial(float x, const float (&c)[n]) {
  float y = c[n - 1];
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

// x = high + low + quadrant pi / 2 with |high| <= pi / 4.
struct Reduced {
  float high, low;
  uint32_t quadrant;
};

// Of x 2 / pi only the bits that matter are computed, two before the point and 62 behind it (Payne and Hanek): for
// finite |x| >= 2^-20.
inline Reduced reduce(float x) {
  constexpr uint64_t two_over_pi[] = {0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
                                      0xfe5163abdebbc561};
  const uint32_t bits = sycl::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffff;
  const int exponent = int(magnitude >> 23) - 150;  // |x| = mantissa 2^exponent
  const uint64_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  const int skip = 64 + exponent - 2, word = skip / 64,
            shift = skip % 64;  // to the bit that x makes one of weight 2
  const auto window = [&](int i) {
    return shift ? two_over_pi[i] << shift | two_over_pi[i + 1] >> (64 - shift) : two_over_pi[i];
  };
  const uint64_t low = window(word + 1), carry = (mantissa * (low >> 32) + (mantissa * uint32_t(low) >> 32)) >> 32;
  const uint64_t turns = mantissa * window(word) + carry;
  const uint64_t nearest = (turns + (uint64_t(1) << 61)) >> 62;
  const int64_t rest = int64_t(turns << 2) >> 2;  // of a quarter turn, in units of 2^-62
  const float a = float(rest), b = float(rest - int64_t(a));
  constexpr float unit = 0x1.921fb6p-62f, unit_low = -0x1.777a5cp-87f;  // pi / 2 * 2^-62
  const float product = a * unit;
  const float error = sycl::fma(a, unit, -product) + sycl::fma(a, unit_low, b * unit);
  const float high = product + error, tail = error - (high - product);
  if (bits >> 31) return {-high, -tail, uint32_t(0 - nearest)};
  return {high, tail, uint32_t(nearest)};
}

inline float sin(float x) {
  constexpr float s[] = {-0.166666667f, 0.00833333332f, -0.000198412638f, 2.75553506e-06f, -2.47611195e-08f};
  constexpr float c[] = {0.0416666667f, -0.00138888889f, 2.48015790e-05f, -2.75552887e-07f, 2.06331239e-09f};
  const float magnitude = sycl::fabs(x);
  if (x == 0) return x;                              // of either sign
  if (!(magnitude < infinity<float>)) return x - x;  // NaN
  const Reduced y = magnitude < 0.78f ? Reduced{x, 0, 0} : reduce(x);
  const float z = y.high * y.high;
  float value;
  if (y.quadrant & 1) {  // cos: the rounding of 1 - z / 2 is made up for
    const float half = 0.5f * z, top = 1 - half;
    value = top + (((1 - top) - half) + sycl::fma(z * z, polynomial(z, c), -y.high * y.low));
  } else {
    value = y.high + sycl::fma(y.high * z, polynomial(z, s), y.low * (1 - 0.5f * z));
  }
  return y.quadrant & 2 ? -value : value;
}
inline double sin(double x) { return sycl::sin(x); }
}  // namespace xpu::math
