// astype: every pair of real types. Floats are truncated to integers; out of range they saturate, NaN gives
// 0. Integers wrap. fp16, bf16 and fp8 are rounded once from any type.
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <limits>
#include <type_traits>

#include "simd/elementwise.hpp"
#include "simd/float8.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
// Converts to float on the way to a shorter float: rounds to odd, so that the second rounding is exact.
template <class From>
struct ToOdd {
  float operator()(From x) const {
    if constexpr (sizeof(From) < 4 || std::is_same_v<From, float>) return float(x);
    else if constexpr (sizeof(From) == 4 || std::is_floating_point_v<From>) return to_odd(double(x));
    else return to_odd(sticky(x));
  }
  // x as a double of the same sign and exponent, with the lowest bit set if bits were cut off.
  static double sticky(From x) {
    const uint64_t magnitude = x < 0 ? 0 - uint64_t(x) : uint64_t(x);
    const uint64_t cut =
        magnitude >> 53 ? (magnitude & ~uint64_t{0xfff}) | uint64_t{(magnitude & 0xfff) != 0} << 12 : magnitude;
    return x < 0 ? -double(cut) : double(cut);
  }
};

template <class T>
constexpr int float8_bits = 0;  // the significand bits that fp8 stores
template <int stored>
constexpr int float8_bits<float8<stored>> = stored;
template <class T>
constexpr bool is_float8 = float8_bits<T> != 0;

template <class To, class From>
struct Convert {
  To operator()(From x) const {
    if constexpr (is_float8<From>) return Convert<To, float>()(widen(x));
    else if constexpr (is_float8<To>) return narrow_float8<float8_bits<To>>(ToOdd<From>()(x));
    else if constexpr (std::is_same_v<To, bool>) return x != 0;
    else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) return truncate(x);
    else return To(x);
  }

  static To truncate(From x) {
    // 2^digits is a float, and the first value out of range; the lower bound is in range.
    constexpr From high = From(2) * From(To(1) << (std::numeric_limits<To>::digits - 1));
    constexpr From low = std::is_signed_v<To> ? -high : From(0);
    using Wide = std::conditional_t<(sizeof(To) < 4), int32_t, To>;  // the targets of processors' conversions
    const bool inside = x > low - 1 && x < high;                     // low - 1 is low where that is the same float
    const To value = To(Wide(inside ? x : From(0)));
    return inside      ? value
           : x >= high ? std::numeric_limits<To>::max()
           : x <= low  ? std::numeric_limits<To>::min()
                       : To(0);
  }
};

template <class T>
constexpr unsigned half_of = 0;  // the DLPack code of fp16 or bf16
template <>
constexpr unsigned half_of<f16> = DVT_FLOAT;
template <>
constexpr unsigned half_of<bf16> = DVT_BFLOAT;
template <class T>
constexpr bool is_half = half_of<T> != 0;
template <class T>
constexpr Half half_kind = half_of<T> == DVT_FLOAT    ? Half::f16
                           : half_of<T> == DVT_BFLOAT ? Half::bf16
                                                      : Half::no;
template <class T>
constexpr DLDataType type_of() {
  if constexpr (is_half<T>) return {uint8_t(half_of<T>), 16, 1};
  else if constexpr (is_float8<T>) return float8_bits<T> == 3 ? dvt::f8e4m3fn : dvt::f8e5m2;
  else return dvt::dtype_of<T>();
}
// The loop's types: fp16 and bf16 are float there; bools are read as bytes; conversions between integers that
// do not widen ignore the sign.
template <class T>
using Inside = std::conditional_t<is_half<T>, float, T>;
template <class From, class To>
struct Source {
  using X = Inside<From>;
  using Plain = std::conditional_t<std::is_same_v<X, bool>, uint8_t, X>;
  using type = Plain;
};
template <class From, class To>
  requires(std::is_integral_v<From> && std::is_integral_v<To> && !std::is_same_v<From, bool> &&
           (sizeof(To) <= sizeof(From) || std::is_same_v<To, bool>))
struct Source<From, To> {
  using type = std::make_unsigned_t<From>;
};
template <class From, class To>
struct Target {
  using type = std::conditional_t<std::is_integral_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>,
                                  std::make_unsigned<To>, std::type_identity<Inside<To>>>::type;
};

// Between float and fp16 or bf16, in registers.
template <class From, class To>
void stored_loop(const void* const* in, const int64_t*, void* out, int64_t n) {
  if constexpr (is_half<To>) narrow(static_cast<const From*>(in[0]), static_cast<To*>(out), n);
  else widen(static_cast<const From*>(in[0]), static_cast<To*>(out), n);
}

#if defined(__AVX2__)
// One vector. The processor converts NaN and what is out of range to the lowest integer, which is right for what is
// too low.
DOVETAIL_CPU_INLINE void truncate_vector(const float* from, int32_t* to) {
#if defined(__AVX512F__)
  const __m512 x = _mm512_loadu_ps(from);
  const __m512i y = _mm512_maskz_cvttps_epi32(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);
  const __mmask16 high = _mm512_cmp_ps_mask(x, _mm512_set1_ps(0x1p31f), _CMP_GE_OQ);
  _mm512_storeu_si512(to, _mm512_mask_set1_epi32(y, high, INT32_MAX));
#else
  const __m256 x = _mm256_loadu_ps(from), high = _mm256_cmp_ps(x, _mm256_set1_ps(0x1p31f), _CMP_GE_OQ);
  const __m256 y = _mm256_xor_ps(_mm256_castsi256_ps(_mm256_cvttps_epi32(x)), high);  // INT32_MIN becomes INT32_MAX
  _mm256_storeu_ps(reinterpret_cast<float*>(to), _mm256_and_ps(y, _mm256_cmp_ps(x, x, _CMP_ORD_Q)));
#endif
}
void float_to_int32(const void* const* in, const int64_t*, void* out, int64_t n) {
  const float* x = static_cast<const float*>(in[0]);
  int32_t* y = static_cast<int32_t*>(out);
  int64_t i = 0;
  for (; i + floats <= n; i += floats) truncate_vector(x + i, y + i);
  for (; i < n; ++i) y[i] = Convert<int32_t, float>()(x[i]);
}
#endif

template <class From, class To>
constexpr Elementwise make_spec() {
  using X = typename Source<From, To>::type;
  using Y = typename Target<From, To>::type;
  Elementwise e{nullptr, 1, {sizeof(From)}, sizeof(To), false, half_kind<From>, half_kind<To>};
  if constexpr (is_half<To> && !is_half<From> && !is_float8<From>) e.loop = unary_loop<ToOdd<X>, float, X>;
  else e.loop = unary_loop<Convert<Y, X>, Y, X>;
#if defined(__AVX2__)
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, int32_t>) e.loop = float_to_int32;
#endif
  if constexpr ((std::is_same_v<From, float> && is_half<To>) || (is_half<From> && std::is_same_v<To, float>))
    e.stored = stored_loop<From, To>;
  return e;
}
template <class From, class To>
inline constexpr Elementwise spec = make_spec<From, To>();

template <class From, class... To>
void add_from(Table& t) {
  const auto add = [&](ElementwiseKernel kernel, DLDataType to) {
    add_elementwise(t, "dvt.astype", kernel, type_of<From>(), to);
  };
  (add(kernel<spec<From, To>>, type_of<To>()), ...);
}
template <class T>
void widen_all(const void* in, float* out, int64_t n) {
  widen(static_cast<const T*>(in), out, n);
}
template <class T>
void narrow_all(const float* in, void* out, int64_t n) {
  narrow(in, static_cast<T*>(out), n);
}

template <class... T>
void add_all(Table& t) {
  (add_from<T, T...>(t), ...);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  t.set_conversions({widen_all<f16>, widen_all<bf16>, narrow_all<f16>, narrow_all<bf16>});
  add_all<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, f8e4m3fn, f8e5m2, f16,
          bf16, float, double>(t);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
