// sin, cos and tan of floats over their whole range, computed in double.
#pragma once
#include "simd/each.hpp"
#include "simd/half.hpp"
#include "simd/wide_math.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::wide {
// x = r + n pi / 2 with |r| <= pi / 4; n modulo 4 is in the low bits of `quadrant`.
struct Reduced {
  D r;
  U quadrant;
};

// For floats from 2 on: computes only the significant bits of x 2 / pi, two before the point and 62 after it
// (Payne and Hanek).
inline double reduce_large(float x, uint64_t& quadrant) {
  static constexpr uint64_t two_over_pi[] = {0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
                                             0xfe5163abdebbc561};
  const uint32_t bits = bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x7f800000) return __builtin_nan("");
  const int exponent = int(magnitude >> 23) - 150;  // |x| = mantissa 2^exponent
  const uint64_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  const int skip = 64 + exponent - 2, shift = skip % 64;  // the bits of 2 / pi from weight 2 on, times x
  const uint64_t* from = two_over_pi + skip / 64;
  const uint64_t high = shift ? from[0] << shift | from[1] >> (64 - shift) : from[0];
  const uint64_t low = shift ? from[1] << shift | from[2] >> (64 - shift) : from[1];
  const uint64_t turns = mantissa * high + uint64_t(static_cast<unsigned __int128>(mantissa) * low >> 64);
  const uint64_t nearest = (turns + (uint64_t{1} << 61)) >> 62;
  const double r = double(int64_t(turns << 2) >> 2) * (0x1p-62 * pi / 2);
  quadrant = bits >> 31 ? 0 - nearest : nearest;
  return bits >> 31 ? -r : r;
}

constexpr double limit = 1e6;  // up to here n pi / 2 is exact in parts of 33 bits

DOVETAIL_CPU_INLINE Reduced reduce(D x) {
  const D shifted = x * (2 / pi) + magic, n = shifted - magic;
  Reduced y{((x - n * 1.5707963267341256) - n * 6.077100506303966e-11) - n * 2.0222662487959506e-21,
            cast<U>(shifted)};
  if (stdx::any_of(abs(x) > limit)) [[unlikely]] {
    for (size_t i = 0; i < D::size(); ++i) {
      if (!(__builtin_fabs(x[i]) > limit)) continue;
      uint64_t quadrant = 0;
      y.r[i] = reduce_large(float(x[i]), quadrant);
      y.quadrant[i] = quadrant;
    }
  }
  return y;
}

DOVETAIL_CPU_INLINE D sin_core(D r) {
  static constexpr double c[] = {-0.16666666666631302, 0.008333333325215657, -0.0001984126379066022,
                                 2.7555350621278537e-06, -2.476111951820389e-08};
  const D z = r * r;
  return r * (1 + z * polynomial(z, c));
}
DOVETAIL_CPU_INLINE D cos_core(D r) {
  static constexpr double c[] = {-0.4999999999999948,   0.04166666666650174,    -0.0013888888871601078,
                                 2.480157896995611e-05, -2.755528869015674e-07, 2.0633123945185143e-09};
  const D z = r * r;
  return 1 + z * polynomial(z, c);
}
// The sine of x, or of x + pi / 2: that of r, |r| <= pi / 2, with the other sign where x = r + an odd number of
// half turns. Its polynomial is shorter than those of sine and cosine up to pi / 4. Several vectors take turns, as
// the instructions of one wait for each other.
template <bool cosine, int n>
DOVETAIL_CPU_INLINE void sin_by_half_turns(D (&x)[n]) {
  [[maybe_unused]] static constexpr double c[] = {-0.1666666666387985, 0.008333332768529359, -0.0001984108650700057,
                                                  2.753645944364609e-06, -2.408009508712208e-08};
  constexpr double offset = cosine ? 0.5 : 0;
  const auto each = [](auto step) __attribute__((always_inline)) {
    for_each_constant(step, std::make_integer_sequence<int, n>());
  };
  D shifted[n], r[n], y[n];
  U turns[n];
  Mask large(false);
  each([&]<int k>() __attribute__((always_inline)) {
    shifted[k] = (x[k] * (1 / pi) - offset) + magic;
    turns[k] = cast<U>(shifted[k]) + (cosine ? 1u : 0u);
  });
  each([&]<int k>() __attribute__((always_inline)) {
    const D half_turns = (shifted[k] - magic) + offset;
    r[k] = (x[k] - half_turns * 3.1415926534682512) - half_turns * 1.2154201013012384e-10;
    large = large || abs(x[k]) > limit;
  });
  if (stdx::any_of(large)) [[unlikely]] {
    for (int k = 0; k < n; ++k)
      for (size_t i = 0; i < D::size(); ++i) {
        if (!(__builtin_fabs(x[k][i]) > limit)) continue;
        uint64_t quadrant = 0;
        double rest = reduce_large(float(x[k][i]), quadrant);
        quadrant += cosine;
        if (quadrant & 1) quadrant += rest > 0 ? 1 : -1, rest += rest > 0 ? -pi / 2 : pi / 2;
        r[k][i] = rest, turns[k][i] = quadrant >> 1;
      }
  }
  each([&]<int k>() __attribute__((always_inline)) { x[k] = r[k] * r[k], y[k] = c[4]; });
  for_each_constant(
      [&]<int term>() __attribute__((always_inline)) {
        each([&]<int k>() __attribute__((always_inline)) { y[k] = x[k] * y[k] + c[3 - term]; });
      },
      std::make_integer_sequence<int, 4>());
  each([&]<int k>() __attribute__((always_inline)) { y[k] = 1 + x[k] * y[k]; });
  each([&]<int k>() __attribute__((always_inline)) { x[k] = cast<D>(cast<U>(r[k] * y[k]) ^ (turns[k] << 63)); });
}
template <int n>
DOVETAIL_CPU_INLINE void sin(D (&x)[n]) {
  sin_by_half_turns<false>(x);
}
template <int n>
DOVETAIL_CPU_INLINE void cos(D (&x)[n]) {
  sin_by_half_turns<true>(x);
}
DOVETAIL_CPU_INLINE Mask is_odd(U quadrant) { return cast<D>((quadrant & 1) << 62) > 0; }
DOVETAIL_CPU_INLINE D tan(D x) {
  const Reduced y = reduce(x);
  const D s = sin_core(y.r), c = cos_core(y.r);
  const Mask odd = is_odd(y.quadrant);
  return select(odd, -c, s) / select(odd, s, c);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::wide
