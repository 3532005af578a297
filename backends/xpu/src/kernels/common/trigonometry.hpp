// sin and cos below 1 ulp, relatively and over the whole range.
#pragma once
#include "kernels/common/math.hpp"

namespace xpu::math {
// The angle high + low + quadrant pi / 2, |high| <= pi / 4.
template <class T>
struct Angle {
  T high, low;
  uint32_t quadrant;
};

// The bits of 2 / pi, behind a word for arguments below 1.
inline constexpr uint64_t two_over_pi[] = {
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
};
// 64 of them from bit `at` on.
inline uint64_t bits_of_two_over_pi(int at) {
  const int word = at / 64, shift = at % 64;
  return shift ? two_over_pi[word] << shift | two_over_pi[word + 1] >> (64 - shift) : two_over_pi[word];
}

// (high + low) of a quarter turn, as radians.
template <class T>
Angle<T> radians(T high, T low, T quarter, T quarter_low, uint64_t quadrant, bool negative) {
  const T product = high * quarter;
  const T error = sycl::fma(high, quarter, -product) + sycl::fma(high, quarter_low, low * quarter);
  const T sum = product + error, rest = error - (sum - product);
  if (negative) return {-sum, -rest, uint32_t(0 - quadrant)};
  return {sum, rest, uint32_t(quadrant)};
}

// Of x 2 / pi only the bits that matter are computed (Payne and Hanek), for finite |x| >= 1/2: two before the
// point, and 62 behind it for float32, 126 for float64.
inline Angle<float> reduce(float x) {
  const uint32_t bits = sycl::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffff;
  const int exponent = int(magnitude >> 23) - 150;  // |x| = m 2^exponent
  const uint64_t m = (magnitude & 0x7fffff) | 0x800000;
  const int at = 64 + exponent - 2;  // the bit that x makes one of weight 2
  const uint64_t turns = m * bits_of_two_over_pi(at) + sycl::mul_hi(m, bits_of_two_over_pi(at + 64));
  const int64_t rest = int64_t(turns << 2) >> 2;  // of a quarter turn, in units of 2^-62
  const float high = float(rest), low = float(rest - int64_t(high));
  return radians(high, low, 0x1.921fb6p-62f, -0x1.777a5cp-87f, (turns + (uint64_t(1) << 61)) >> 62, bits >> 31);
}
inline Angle<double> reduce(double x) {
  const uint64_t bits = sycl::bit_cast<uint64_t>(x), magnitude = bits << 1 >> 1;
  const int exponent = int(magnitude >> 52) - 1075;
  const uint64_t m = (magnitude & 0xfffffffffffff) | 0x10000000000000;
  const int at = 64 + exponent - 2;
  const uint64_t a = bits_of_two_over_pi(at), b = bits_of_two_over_pi(at + 64), c = bits_of_two_over_pi(at + 128);
  const uint64_t third = m * c, product = m * b, second = product + sycl::mul_hi(m, c);
  const uint64_t first = m * a + sycl::mul_hi(m, b) + (second < product);
  // of a quarter turn: a part with its sign in units of 2^-64, one without in units of 2^-128
  const int64_t top = int64_t(first << 2 | second >> 62);
  const uint64_t tail = second << 2 | third >> 62;
  const double upper = double(top >> 32) * 0x1p-32, lower = double(uint32_t(top)) * 0x1p-64;
  const double sum = upper + lower, rest = (lower - (sum - upper)) + double(tail) * 0x1p-128;
  const double high = sum + rest, low = rest - (high - sum);
  return radians(high, low, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, (first + (uint64_t(1) << 61)) >> 62,
                 bits >> 63);
}

template <class T>
T sin_of(const Angle<T>& x) {
  constexpr T s[] = {T(-0.16666666666666666),   T(0.008333333333333333),   T(-0.0001984126984126984),
                     T(2.7557319223985893e-06), T(-2.505210838544172e-08), T(1.6059043836821613e-10),
                     T(-7.647163731819816e-13), T(2.8114572543455206e-15)};
  constexpr T c[] = {T(0.041666666666666664),   T(-0.001388888888888889),  T(2.48015873015873e-05),
                     T(-2.755731922398589e-07), T(2.08767569878681e-09),   T(-1.1470745597729725e-11),
                     T(4.779477332387385e-14),  T(-1.5619206968586225e-16)};
  const T z = x.high * x.high;
  T value;
  if (x.quadrant & 1) {  // cos: the rounding of 1 - z / 2 is made up for
    const T half = T(0.5) * z, top = 1 - half;
    value = top + (((1 - top) - half) + sycl::fma(z * z, polynomial(z, c), -x.high * x.low));
  } else {
    value = x.high + sycl::fma(x.high * z, polynomial(z, s), x.low * (1 - T(0.5) * z));
  }
  return x.quadrant & 2 ? -value : value;
}

template <class T>
Angle<T> angle(T x) {
  return sycl::fabs(x) < T(0.78) ? Angle<T>{x, 0, 0} : reduce(x);
}

template <class T>
T sin(T x) {
  if (x == 0) return x;                              // of either sign
  if (!(sycl::fabs(x) < infinity<T>)) return x - x;  // NaN
  return sin_of(angle(x));
}
template <class T>
T cos(T x) {
  if (!(sycl::fabs(x) < infinity<T>)) return x - x;
  Angle<T> turned = angle(x);
  ++turned.quadrant;
  return sin_of(turned);
}
}  // namespace xpu::math
