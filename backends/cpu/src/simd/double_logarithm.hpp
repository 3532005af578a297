// Logarithms of vectors of doubles, and the inverse hyperbolic functions, which are logarithms of sums of two
// doubles: about half an ulp.
#pragma once
#include "simd/double_math.hpp"
#include "simd/logarithm_tables.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles {
using wide::cast;
using wide::infinity;
using wide::Mask;
using wide::U;

#if defined(DOVETAIL_CPU_FMA)

// ---- tables of numbers by interval of the mantissa, `intervals`

#if defined(__AVX2__) && !defined(__AVX512F__)
namespace intervals = tables::eight;
constexpr int index_shift = 49;
// The halves of eight doubles: AVX2 permutes only numbers of 32 bits.
struct Halves {
  uint32_t high[8], low[8];
  constexpr explicit Halves(const double (&table)[8]) : high(), low() {
    for (int i = 0; i < 8; ++i) {
      high[i] = uint32_t(__builtin_bit_cast(uint64_t, table[i]) >> 32);
      low[i] = uint32_t(__builtin_bit_cast(uint64_t, table[i]));
    }
  }
};
DOVETAIL_CPU_INLINE __m256i permuted(const uint32_t (&table)[8], U i) {
  return _mm256_permutevar8x32_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(table)),
                                     static_cast<__m256i>(i));
}
// table[i % 8], whose low halves are 0
template <const double (&table)[8]>
DOVETAIL_CPU_INLINE D look_up_short(U i) {
  static constexpr Halves halves(table);
  return D(_mm256_castsi256_pd(_mm256_slli_epi64(permuted(halves.high, i), 32)));
}
template <const double (&table)[8]>
DOVETAIL_CPU_INLINE D look_up(U i) {
  static constexpr Halves halves(table);
  const __m256i high = _mm256_slli_epi64(permuted(halves.high, i), 32);
  return D(_mm256_castsi256_pd(_mm256_blend_epi32(permuted(halves.low, i), high, 0xaa)));
}
#else
namespace intervals = tables::sixteen;
constexpr int index_shift = 48;
// table[i % 16]
template <const double (&table)[16]>
DOVETAIL_CPU_INLINE D look_up(U i) {
#if defined(__AVX512F__)
  return D(_mm512_permutex2var_pd(_mm512_loadu_pd(table), static_cast<__m512i>(i), _mm512_loadu_pd(table + 8)));
#else
  return D([&](auto k) { return table[i[k] % 16]; });
#endif
}
template <const double (&table)[16]>
DOVETAIL_CPU_INLINE D look_up_short(U i) {
  return look_up<table>(i);
}
#endif

struct Natural {
  static constexpr auto &first = intervals::natural_first, &second = intervals::natural_second;
  static constexpr auto& constants = tables::constants_of_natural;
};
struct Binary {
  static constexpr auto &first = intervals::binary_first, &second = intervals::binary_second;
  static constexpr auto& constants = tables::constants_of_binary;
};
struct Decimal {
  static constexpr auto &first = intervals::decimal_first, &second = intervals::decimal_second;
  static constexpr auto& constants = tables::constants_of_decimal;
};

// ---- the logarithm of a normal positive number

// x = m 2^e, m in interval i. The bits of x are those of m plus `exponent`.
struct Mantissa {
  D m, e;
  U exponent, i;
};
DOVETAIL_CPU_INLINE Mantissa mantissa(D x) {
  const U above = cast<U>(x) - intervals::least, exponent = above & (~uint64_t{0} << 52);
#if defined(__AVX512F__)
  const D e(_mm512_cvtepi64_pd(_mm512_srai_epi64(static_cast<__m512i>(above), 52)));
#else
  constexpr uint64_t bias = uint64_t{1024} << 52;
  const D e = cast<D>((above + bias) >> 52 | uint64_t{0x4330000000000000}) - (0x1p52 + 1024);
#endif
  return {cast<D>(cast<U>(x) - exponent), e, exponent, above >> index_shift};
}

// log(2^z.e (1 + r) / factor). `whole` + scale (r - r^2 / 2) is the sum of two doubles; `add` adds to the small
// terms.
template <class Base, class Add>
DOVETAIL_CPU_INLINE D log_of(const Mantissa& z, D r, Add add) {
  constexpr double two = Base::constants[0], two_rest = Base::constants[1];
  constexpr double scale = Base::constants[2], scale_rest = Base::constants[3];
  const D whole = z.e * two + look_up_short<Base::first>(z.i);  // exact
  D small = look_up<Base::second>(z.i), linear = r, sum, lost;
  if constexpr (two_rest != 0) small += z.e * two_rest;
  small = add(small);
  const D half = 0.5 * r;
  if constexpr (scale == 1) {
    sum = less_product(whole + r, half, r);
    lost = less_product((whole - sum) + r, half, r);
  } else {
    linear = r * scale, small += r * scale_rest;
    sum = less_product(multiply_add(r, scale, whole), half, linear);
    lost = less_product(multiply_add(r, scale, whole - sum), half, linear);
  }
  return sum + ((linear * (r * r)) * polynomial(r, intervals::polynomial) + (small + lost));
}
template <class Base>
DOVETAIL_CPU_INLINE D log_of(const Mantissa& z) {
  const D r = less_product(-1, z.m, look_up_short<intervals::minus_factor>(z.i));
  return log_of<Base>(z, r, [](D small) __attribute__((always_inline)) { return small; });
}
// A number in (0, far_limit) plus `low`, which is at most a few ulp of it.
struct Argument {
  Mantissa z;
  D low;
};
// The natural logarithm, relatively accurate even where it is tiny.
DOVETAIL_CPU_INLINE D log_of(const Argument& x) {
  const D minus_factor = look_up_short<intervals::minus_factor>(x.z.i);
  const D scaled = cast<D>(cast<U>(minus_factor) - x.z.exponent);
  const D r = less_product(-1, x.z.m, minus_factor), all = less_product(r, x.low, scaled);
  return log_of<Natural>(x.z, all, [&](D small) __attribute__((always_inline)) {
    return less_product(small + (r - all), x.low, scaled);
  });
}
// The same in less time, where x.low is at most 2^-25 of the logarithm.
DOVETAIL_CPU_INLINE D log_of_apart(const Argument& x) {
  const D minus_factor = look_up_short<intervals::minus_factor>(x.z.i);
  const D rest = x.low * cast<D>(cast<U>(minus_factor) - x.z.exponent);
  const D r = less_product(-1, x.z.m, minus_factor);
  return log_of<Natural>(
      x.z, r, [&](D small) __attribute__((always_inline)) { return small - less_product(rest, rest, r); });
}
DOVETAIL_CPU_INLINE Argument argument(D high, D low) { return {mantissa(high), low}; }

// From here on 1 + x rounds to x, and x + sqrt(x^2 - 1) or x + sqrt(x^2 + 1) to 2 x.
constexpr double far_limit = 0x1p500;
// high + low, but `times` x from `far_limit` on
DOVETAIL_CPU_INLINE Argument argument_of_any(D high, D low, D x, double times) {
  const Mask beyond = !(x < far_limit);
  Mantissa z = mantissa(select(beyond, x * (times * 0x1p-100), high));
  z.e += select(beyond, 100, 0);
  return {z, select(beyond, 0, low)};
}

// ---- the functions of all numbers

constexpr double least = 0x1p-1022;  // the normal numbers begin here
// Whether all numbers are positive, normal and finite.
DOVETAIL_CPU_INLINE bool are_normal(D x) {
#if defined(__AVX512F__)
  return !_mm512_fpclass_pd_mask(static_cast<__m512d>(x), 0xff);
#else
  return stdx::all_of(x >= least && x < infinity);
#endif
}
template <class Base>
DOVETAIL_CPU_INLINE D logarithm(D x) {
  if (are_normal(x)) [[likely]]
    return log_of<Base>(mantissa(x));
  const Mask tiny = x < least;
  Mantissa z = mantissa(select(tiny, x * 0x1p54, x));
  z.e -= select(tiny, 54, 0);
  return wide::log_special(x, log_of<Base>(z));
}
DOVETAIL_CPU_INLINE D log(D x) { return logarithm<Natural>(x); }
DOVETAIL_CPU_INLINE D log2(D x) { return logarithm<Binary>(x); }
DOVETAIL_CPU_INLINE D log10(D x) { return logarithm<Decimal>(x); }

// y with the sign of x; y has that already or none.
DOVETAIL_CPU_INLINE D with_sign(D y, D x) {
  constexpr uint64_t top = uint64_t{1} << 63;
#if defined(__AVX512F__)
  return D(_mm512_castsi512_pd(_mm512_ternarylogic_epi64(cast<__m512i>(y), cast<__m512i>(x),
                                                         _mm512_set1_epi64(int64_t(top)), 0xf8)));  // y | (x & top)
#else
  return cast<D>(cast<U>(y) | (cast<U>(x) & top));
#endif
}
// Whether all numbers are between `low` and `high`.
DOVETAIL_CPU_INLINE bool all_between(D x, double low, double high) {
#if defined(__AVX512F__)
  const __m512d y = static_cast<__m512d>(x);
  const __mmask8 above = _mm512_cmp_pd_mask(y, _mm512_set1_pd(low), _CMP_GT_OQ);
  return _mm512_mask_cmp_pd_mask(above, y, _mm512_set1_pd(high), _CMP_LT_OQ) == 0xff;
#else
  return stdx::all_of(x > low && x < high);
#endif
}

DOVETAIL_CPU_INLINE D log1p(D x) {
  const D u = 1 + x, low = x - (u - 1);
  const Argument y = argument(u, low);
  if (all_between(x, -1, far_limit)) [[likely]]
    return with_sign(log_of(y), x);
  return wide::log_special(u, with_sign(log_of(argument_of_any(u, low, x, 1)), x));
}

// The square root of high + low, high > 0 and |low| at most an ulp of it
DOVETAIL_CPU_INLINE Sum root(D high, D low) {
#if defined(__AVX512F__)
  // Newton's method takes less time than a root and a division.
  const D guess(_mm512_rsqrt14_pd(static_cast<__m512d>(high)));
  const D y = high * guess, half = 0.5 * guess, error = less_product(0.5, y, half);
  const D second = multiply_add(y, error, y), inverse = multiply_add(half, error, half);
  const D second_error = less_product(0.5, second, inverse), third = multiply_add(second, second_error, second);
  return {third, (less_product(high, third, third) + low) * multiply_add(inverse, second_error, inverse)};
#else
  const D y = stdx::sqrt(high), inverse = 0.5 / y;
  return {y, (less_product(high, y, y) + low) * inverse};
#endif
}

DOVETAIL_CPU_INLINE D asinh(D x) {
  const D a = abs(x), square = multiply_add(a, a, 1);
  const Sum s = root(square, multiply_add(a, a, 1 - square)), u = sum(s.high, a);
  const D low = u.low + s.low;
  const Argument y = argument(u.high, low);
  if (stdx::all_of(a < far_limit)) [[likely]]
    return with_sign(log_of(y), x);
  return select(a < infinity, with_sign(log_of(argument_of_any(u.high, low, a, 2)), x), x);
}
DOVETAIL_CPU_INLINE D acosh(D x) {
  const D product = multiply_add(x, x, -0.0);  // which the compiler does not fuse with the subtraction
  const D high = multiply_add(x, x, -1), rest = ((product - 1) - high) + product_rest(x, x, product);
  const Sum s = root(high, rest), u = sum(x, s.high);
  const D low = u.low + s.low;
  const Argument y = argument(u.high, low);
  if (all_between(x, 1, far_limit)) [[likely]]
    return log_of_apart(y);
  const D log = select(x < infinity, log_of_apart(argument_of_any(u.high, low, x, 2)), x);
  return select(x <= 1, select(x < 1, __builtin_nan(""), 0), log);
}
// Half the logarithm of (1 + |x|) / (1 - |x|).
DOVETAIL_CPU_INLINE D atanh(D x) {
  const D a = abs(x);
  const Sum above = sum(1, a), below = sum(1, -a);
  const D inverse = 1 / below.high, quotient = above.high * inverse;
  const D remainder = less_product(above.high, quotient, below.high) + less_product(above.low, quotient, below.low);
  const D log = log_of_apart(argument(quotient, remainder * inverse));
#if defined(__AVX512F__)
  const __mmask8 large = _mm512_cmp_pd_mask(static_cast<__m512d>(a), _mm512_set1_pd(0x1p-30), _CMP_GE_OQ);
  const D half(_mm512_mask_mul_pd(static_cast<__m512d>(a), large, static_cast<__m512d>(log), _mm512_set1_pd(0.5)));
#else
  const D half = select(a < 0x1p-30, a, 0.5 * log);
#endif
  const D y = with_sign(half, x);
  if (stdx::all_of(a < 1)) [[likely]]
    return y;
  const D special = select(a > 1, __builtin_nan(""), with_sign(infinity, x));
  return select(a < 1, y, select(is_nan(x), x, special));
}
#endif
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA::doubles
