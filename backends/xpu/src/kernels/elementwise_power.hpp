// Powers; exponentials and logarithms to other bases than e; lengths. The methods are those of the schema's bodies.
#include "kernels/common/elementwise.hpp"
#include "kernels/common/math.hpp"

namespace {
template <class T>
constexpr bool single = sizeof(T) == 4;
using xpu::math::infinity;
template <class T>
constexpr T ln2 = T(0.6931471805599453);

using xpu::math::scale;
inline double scale(double y, int n) {  // |n| <= 2000
  const int64_t half = n >> 1;
  return y * sycl::bit_cast<double>((half + 1023) << 52) * sycl::bit_cast<double>((n - half + 1023) << 52);
}

template <class T>
T bounded(T x, T least, T most) {
  return x < least ? least : x > most ? most : x;
}

// x = m 2^e with m in [sqrt(1/2), sqrt(2)), of a finite x > 0.
template <class T>
struct Split {
  T m;
  int e;

  explicit Split(T x) {
    using Bits = std::conditional_t<single<T>, int32_t, int64_t>;
    constexpr int digits = single<T> ? 23 : 52;
    constexpr Bits root_half = single<T> ? Bits(0x3f3504f3) : Bits(0x3fe6a09e667f3bcd);
    const bool small = x < (single<T> ? T(0x1p-126) : T(0x1p-1022));
    const Bits bits = sycl::bit_cast<Bits>(small ? x * T(0x1p60) : x), exponent = (bits - root_half) >> digits;
    m = sycl::bit_cast<T>(Bits(bits - exponent * (Bits(1) << digits)));
    e = int(exponent) - (small ? 60 : 0);
  }
};

struct Exp2 {  // exact at integers
  template <class T>
  T operator()(T x) const {
    const T y = single<T> ? bounded(x, T(-152), T(130)) : bounded(x, T(-1080), T(1030)), n = sycl::rint(y);
    return x != x ? x : scale(xpu::math::exp((y - n) * ln2<T>), int(n));
  }
};
struct Log2 {  // exact at powers of 2
  template <class T>
  T operator()(T x) const {
    if (!(x > 0)) return x == 0 ? -infinity<T> : T(__builtin_nanf(""));
    if (x == infinity<T>) return x;
    const Split<T> s(x);
    return T(s.e) + xpu::math::log(s.m) * T(1.4426950408889634);
  }
};
struct Log10 {
  template <class T>
  T operator()(T x) const {
    return xpu::math::log(x) * T(0.43429448190325182);
  }
};

// (atanh(s) / s - 1) / z * 2 of z = s * s, |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)
inline float atanh_fit(float z) {
  constexpr float c[] = {0.666667774f, 0.39977398f, 0.29876085f};
  return xpu::math::polynomial(z, c);
}
inline double atanh_fit(double z) {
  constexpr double c[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                          2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  return xpu::math::polynomial(z, c);
}

template <class T>
struct Sum {
  T high, low;
};
// log2(a) of a finite a > 0, with more digits than T has.
template <class T>
Sum<T> log2_of(T a) {
  constexpr T log2e = single<T> ? T(1.44269502162933349609375) : T(1.4426950408889634),
              log2e_low = single<T> ? T(1.9259629911266175e-8) : T(2.0355273740931033e-17);
  const Split<T> split(a);
  const T e = T(split.e), m = split.m, below = m - 1, above = m + 1, s = below / above, p = s * above;
  const T rest = ((below - p) - sycl::fma(s, above, -p)) - s * (m - (above - 1));
  const T z = s * s, low = rest / above * 2 + s * z * atanh_fit(z);  // ln(m) = 2 s + low
  const T product = 2 * s * log2e, error = sycl::fma(2 * s, log2e, -product);
  const T top = e + product;
  const T tail = (product - (top - e)) + (error + s * (2 * log2e_low) + low * log2e);
  const T sum = top + tail;
  return {sum, tail - (sum - top)};
}
// a^y of a finite a > 0
template <class T>
T positive_power(T a, T y) {
  constexpr T far = single<T> ? T(0x1p36) : T(0x1p70), beyond = single<T> ? T(200) : T(1200);
  const Sum<T> log2 = log2_of(a);
  y = bounded(y, -far, far);
  const T product = y * log2.high;
  const T error = sycl::fabs(product) < beyond ? sycl::fma(y, log2.high, -product) + y * log2.low : T(0);
  const T p = bounded(product, -beyond, beyond), n = sycl::rint(p);
  return scale(xpu::math::exp(((p - n) + error) * ln2<T>), int(n));
}

struct Pow {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) return integer(x, y);
    else return real(x, y);
  }

 private:
  // By repeated squaring, wrapping. A negative exponent: 1 / x^|y| truncated, and 0 where x is 0.
  template <class T>
  static T integer(T x, T y) {
    if (y < 0) return x == 1 ? T(1) : x == T(-1) ? T(y & 1 ? -1 : 1) : T(0);
    std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t> result = 1, base = x;
    for (auto n = std::make_unsigned_t<T>(y); n; n = n >> 1, base *= base)
      if (n & 1) result *= base;
    return T(result);
  }
  template <class T>
  static T real(T x, T y) {  // special cases as in C99
    if (x == 1 || y == 0) return 1;
    if (x != x || y != y) return x + y;
    const T a = sycl::fabs(x);
    const bool finite = sycl::fabs(y) < infinity<T>, whole = sycl::floor(y) == y;
    const bool odd = finite && whole && sycl::floor(y / 2) != y / 2;
    if (x < 0 && a < infinity<T> && finite && !whole) return T(__builtin_nanf(""));
    T r;
    if (a == 0 || a == infinity<T>) r = (a == 0) == (y < 0) ? infinity<T> : T(0);
    else r = positive_power(a, y);
    return odd && sycl::signbit(x) ? -r : r;
  }
};

struct Hypot {  // without overflow on the way; an infinity wins over NaN
  template <class T>
  T operator()(T x, T y) const {
    constexpr T least = single<T> ? T(0x1p-50) : T(0x1p-450), most = single<T> ? T(0x1p60) : T(0x1p500),
                up = single<T> ? T(0x1p80) : T(0x1p600), down = 1 / up;
    const T a = sycl::fabs(x), b = sycl::fabs(y);
    if (a == infinity<T> || b == infinity<T>) return infinity<T>;
    const T large = a > b ? a : b, k = large < least ? up : large > most ? down : T(1);
    return sycl::sqrt((a * k) * (a * k) + (b * k) * (b * k)) / k;
  }
};

struct Logaddexp {  // accurate to the larger of the result and the operands
  template <class T>
  T operator()(T x, T y) const {
    if (x == y) return x + ln2<T>;
    const bool first = x > y || x != x;
    const T large = first ? x : y, small = first ? y : x, d = small - large;
    const T t = d - small, error = (small - (d - t)) - (large + t);
    return large + sycl::log1p(xpu::math::exp(d) * (1 + (d > -infinity<T> ? error : T(0))));
  }
};
}  // namespace

#define POWER(suffix, T) XPU_BINARY(pow_##suffix, Pow, T, T, T)
XPU_NUMBERS(POWER)

#define POWER_FLOATS(suffix, T)              \
  XPU_UNARY(exp2_##suffix, Exp2, T, T)       \
  XPU_UNARY(log2_##suffix, Log2, T, T)       \
  XPU_UNARY(log10_##suffix, Log10, T, T)     \
  XPU_BINARY(hypot_##suffix, Hypot, T, T, T) \
  XPU_BINARY(logaddexp_##suffix, Logaddexp, T, T, T)
XPU_FLOATS(POWER_FLOATS)
