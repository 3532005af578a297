// Elementary functions of a vector of floats. Written once over std::experimental::simd; without branches
// where possible, correct for NaN, infinities, zeros of both signs and subnormals. The errors were measured
// over all 2^32 inputs, with and without fused multiply-add.
//
// a * b + c is contracted if the level has FMA; the results are accurate either way. (stdx::fma calls the C
// library without FMA.) The coefficients are minimax fits of our own, rounded to float. Processors with vectors of
// 64 bytes look up 32 numbers in an instruction, those of 32 bytes 8, hence table_math.hpp and table_math_avx2.hpp.
#pragma once
#if defined(__AVX512F__)
#include "simd/table_math.hpp"
#elif defined(__AVX2__)
#include "simd/table_math_avx2.hpp"
#else
#include "simd/lanes.hpp"
#endif

namespace dovetail::cpu::DOVETAIL_CPU_ISA::math {
#if !defined(__AVX2__)
// y * 2^n for |n| <= 250, rounded once if the result is subnormal.
DOVETAIL_CPU_INLINE V scale(V y, V n) {
  const I k = stdx::static_simd_cast<I>(n), half = k >> 1;
  return y * from_bits((half + 127) << 23) * from_bits((k - half + 127) << 23);
}
// x - n ln 2, ln 2 in two parts; n times the first is exact.
DOVETAIL_CPU_INLINE V without_power(V x, V n) { return (x - n * 0.693145752f) - n * 1.42860677e-6f; }
DOVETAIL_CPU_INLINE V exp_near_0(V r) {
  static constexpr float c[] = {0.5f, 0.166666657f, 0.0416662805f, 0.00833350513f, 0.00139457465f, 0.000197886606f};
  return 1 + (r + r * r * polynomial(r, c));
}
// e^(x + rest) / 2^n: x in [-126, 0], |rest| small.
DOVETAIL_CPU_INLINE V exp_scaled(V x, V rest, V& n) {
  n = stdx::nearbyint(x * 1.44269504f);
  return exp_near_0(without_power(x, n) + rest);
}
// e^x, for x in [-87, 88] only, where the result is normal.
DOVETAIL_CPU_INLINE V exp_normal(V x) {
  const V n = stdx::nearbyint(x * 1.44269504f);
  return exp_near_0(without_power(x, n)) * from_bits((stdx::static_simd_cast<I>(n) + 127) << 23);
}

// e^x / 2^n. What rounding takes from r, and then from 1 + r, is added with the higher powers: the error is half an
// ulp and little more, where that of exp_parts is one.
DOVETAIL_CPU_INLINE V exp_scaled(V x, V& n) {
  static constexpr float c[] = {0.333333343f, 0.0833329186f, 0.0166665502f, 0.00278708315f, 0.000398264237f};
  n = stdx::nearbyint(x * 1.44269504f);
  const V high = x - n * 0.693145752f, r = high - n * 1.42860677e-6f;
  const V lost = (high - r) - n * 1.42860677e-6f, sum = 1 + r, half = 0.5f * r, square = half * r;
  return sum + (half * r + (square * r * polynomial(r, c) + ((r - (sum - 1)) + lost * sum)));
}
// e^x for x <= 89, or NaN.
DOVETAIL_CPU_INLINE V exp_finite(V x) {
  V n;
  const V y = exp_scaled(at_least(-104, x), n);
  return scale(y, n);
}
DOVETAIL_CPU_INLINE V exp(V x) { return exp_finite(at_most(89, x)); }

DOVETAIL_CPU_INLINE V log(V x) {
  static constexpr float c[] = {0.333333135f,  -0.250000089f, 0.200021178f,  -0.166679874f, 0.142195642f,
                                -0.124056987f, 0.118882f,     -0.116751947f, 0.0674608797f};
  const Mask small = x < 1.17549435e-38f;
  const V y = select(small, x * 8388608.f, x);
  // y = m * 2^e with m in [sqrt(1/2), sqrt(2))
  constexpr uint32_t root_half = 0x3f3504f3, bias = 128u << 23;
  const U e = (bits(y) - root_half + bias) >> 23;  // exponent + 128
  const V m = from_bits(bits(y) - (e << 23) + bias) - 1;
  const V n = stdx::static_simd_cast<V>(stdx::static_simd_cast<I>(e)) - select(small, 23 + 128, 128);
  const V low = m * m * (m * polynomial(m, c) - 0.5f) + n * 1.42860677e-6f;
  V result = (m + low) + n * 0.693145752f;
  result = select(x == 0, -infinity, result);
  result = select(x < 0, __builtin_nanf(""), result);
  return select(is_nan(x) || x == infinity, x, result);
}

DOVETAIL_CPU_INLINE V erf(V x) {
  // erf(a) / a - 1 in v = a^2 - 1/4, where less is lost than in a^2
  static constexpr float near[] = {0.0409997553f,  -0.32443434f,     0.094520472f,   -0.0221412051f,
                                   0.00426163571f, -0.000687937776f, 8.27555632e-05f};
  // -log(4 erfc(1 + u)) for u in [-0.145, 2.95]
  static constexpr float far[] = {0.463311136f,  2.63896751f,    0.843107402f,    0.0415607207f,
                                  -0.010038239f, 0.00200104201f, -0.00028294645f, 2.02336814e-05f};
  const V a = abs(x), b = stdx::min(a, V(3.95f));
  V n;
  const V tail = exp_scaled(-polynomial(b - 1, far), n);
  const V outside = 1 - tail * from_bits((stdx::static_simd_cast<I>(n) + (127 - 2)) << 23);
  const V inside = a + a * polynomial(a * a - 0.25f, near);
  return select(is_nan(x), x, copysign(select(a < 0.86f, inside, outside), x));
}

#endif

#if !defined(__AVX512F__)
// 1 / (1 + e^-x), by e^-|x|: relative accuracy in both tails.
DOVETAIL_CPU_INLINE V sigmoid(V x) {
  const V e = exp_finite(minus_abs(x));
  return select(x < 0, e, 1) / (1 + e);
}

// Phi(-q) e^(q^2/2) for q in [0, 15.5].
DOVETAIL_CPU_INLINE V normal_tail_factor(V q) {
  // times (q + 2.5), in t = (q - 2.5) / (q + 2.5)
  static constexpr float h[] = {0.706656635f,     -0.433692008f,   0.131986976f,   0.00923590641f,
                                -0.0163860563f,   -0.00160093233f, 0.00252343365f, 0.000684357597f,
                                -0.000311028532f, -0.000157360104f};
  const V inverse = 1 / (q + 2.5f);
  return polynomial((q - 2.5f) * inverse, h) * inverse;
}
#endif

// x * sigmoid(x), by h = e^(-|x|/2): h is normal where the result is not 0.
DOVETAIL_CPU_INLINE V silu(V x) {
  const V h = exp_normal(-0.5f * stdx::min(V(120), abs(x)));
  const V positive = 1 / (1 + h * h);
  return select(x < 0, stdx::max(V(-120), x) * h * (h * positive), x * positive);  // NaN stays NaN
}

// Its derivative, sigmoid(x) (1 + x sigmoid(-x)).
DOVETAIL_CPU_INLINE V silu_slope(V x) {
  const V y = clamp(x, -206, 206), h = exp(-0.5f * abs(y));
  const V positive = 1 / (1 + h * h);
  const V below = (1 + y * positive) * h * (h * positive), above = positive * (1 + y * h * (h * positive));
  return select(is_nan(x), x, select(x < 0, below, above));
}

// Phi(-q) = e 2^n h of q = |x|, up to where it vanishes.
struct NormalTail {
  V q, e, n, h;
};
DOVETAIL_CPU_INLINE NormalTail normal_tail(V x) {
  NormalTail t;
  t.q = stdx::min(abs(x), V(14.9f));
#if defined(__AVX2__)
  const V square = t.q * t.q, lost = multiply_add(t.q, t.q, -square);
  t.e = exp_scaled(-0.5f * square, -0.5f * lost, t.n);
#else
  const V upper = from_bits(bits(t.q) & 0xfffff000u);  // its square is exact
  t.e = exp_scaled(-0.5f * upper * upper, -0.5f * (t.q - upper) * (t.q + upper), t.n);
#endif
  t.h = normal_tail_factor(t.q);
  return t;
}

// x Phi(x). Its tail keeps its relative accuracy.
DOVETAIL_CPU_INLINE V gelu_by_tail(V x) {
  const NormalTail t = normal_tail(x);
  const V tail = scale(t.e * (t.h * t.q), t.n);
  return select(x < 0, -tail, x - tail);  // NaN stays NaN
}
DOVETAIL_CPU_INLINE V gelu(V x) {
#if defined(__AVX2__)
  const Mask near = abs(x) < normal_limit;
  if (stdx::all_of(near)) [[likely]]
    return gelu_near(x);
  return select(near, gelu_near(x), gelu_by_tail(x));
#else
  return gelu_by_tail(x);
#endif
}
// Its derivative, Phi(x) + x phi(x): that at -q is Phi(-q) - q phi(q), that at q the rest to 1.
DOVETAIL_CPU_INLINE V gelu_slope(V x) {
  const NormalTail t = normal_tail(x);
  const V tail = scale(t.e * (t.h - t.q * 0.398942280f), t.n);
  return select(is_nan(x), x, select(x < 0, tail, 1 - tail));
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::math
