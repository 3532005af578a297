// Trigonometric functions and their inverses. SYCL promises too little of most; the fits are those of the schema.
#include "kernels/common/elementwise.hpp"
#include "kernels/common/trigonometry.hpp"

namespace {
struct Sin {
  template <class T>
  T operator()(T x) const {
    return xpu::math::sin(x);
  }
};
struct Cos {
  template <class T>
  T operator()(T x) const {
    return xpu::math::cos(x);
  }
};
struct Tan {
  template <class T>
  T operator()(T x) const {
    if (x == 0) return x;  // of either sign
    if (!(sycl::fabs(x) < xpu::math::infinity<T>)) return x - x;
    const xpu::math::Angle<T> angle = xpu::math::angle(x);
    return xpu::math::sin_of(angle) /
           xpu::math::sin_of(xpu::math::Angle<T>{angle.high, angle.low, angle.quadrant + 1});
  }
};

template <class T>
constexpr T pi = T(3.141592653589793);

// (asin(t) / t - 1) / z of z = t * t, t <= 1/2
inline float asin_fit(float z) {
  constexpr float c[] = {0.166667525f, 0.0749529764f, 0.0454703759f, 0.024179515f, 0.0421663079f};
  return xpu::math::polynomial(z, c);
}
inline double asin_fit(double z) {
  constexpr double c[] = {0.16666666666666669, 0.07499999999998433,  0.04464285714635543,  0.030381944138531247,
                          0.02237217294214989, 0.017352392720869973, 0.013971212973552933, 0.011479177415184906,
                          0.01032281435018578, 0.005457506718640358, 0.01740087944269402,  -0.014851887071247204,
                          0.028757851367421566};
  return xpu::math::polynomial(z, c);
}
// (atan(t) / t - 1) / z of z = t * t, t <= tan(pi / 8)
inline float atan_fit(float z) {
  constexpr float c[] = {-0.333333152f, 0.19998471f, -0.142435222f, 0.10593727f, -0.0607799075f};
  return xpu::math::polynomial(z, c);
}
inline double atan_fit(double z) {
  constexpr double c[] = {-0.3333333333333333,   0.19999999999995516, -0.14285714284665682, 0.11111111015187018,
                          -0.0909090457530649,   0.07692183125376892, -0.06664510525508936, 0.05858140904866328,
                          -0.050854078345894844, 0.03923044478779309, -0.019175404711104935};
  return xpu::math::polynomial(z, c);
}

template <class T>
T asin_small(T t) {
  const T z = t * t;
  return t + t * z * asin_fit(z);
}
struct Asin {
  template <class T>
  T operator()(T x) const {
    const T a = sycl::fabs(x);
    const bool far = a > T(0.5);
    const T r = asin_small(far ? sycl::sqrt((1 - a) * T(0.5)) : a);
    return sycl::copysign(far ? pi<T> / 2 - r * 2 : r, x);
  }
};
struct Acos {
  template <class T>
  T operator()(T x) const {
    const T a = sycl::fabs(x);
    if (!(a > T(0.5))) return pi<T> / 2 - asin_small(x);
    const T r = 2 * asin_small(sycl::sqrt((1 - a) * T(0.5)));
    return x < 0 ? pi<T> - r : r;
  }
};

// As pi/4 + atan((a - 1) / (a + 1)) or pi/2 - atan(1 / a) beyond tan(pi/8) and tan(3 pi/8).
template <class T>
T atan_positive(T a) {
  const bool middle = a > T(0.41421356), high = a > T(2.4142135);
  const T t = (high ? T(-1) : middle ? a - 1 : a) / (high ? a : middle ? a + 1 : T(1));
  const T z = t * t, r = t + t * z * atan_fit(z);
  return high ? pi<T> / 2 + r : middle ? pi<T> / 4 + r : r;
}
struct Atan {
  template <class T>
  T operator()(T x) const {
    return sycl::copysign(atan_positive(sycl::fabs(x)), x);
  }
};
struct Atan2 {  // zeros and infinities as in C99
  template <class T>
  T operator()(T y, T x) const {
    const T ay = sycl::fabs(y), ax = sycl::fabs(x);
    const bool steep = ax < ay;
    const T low = steep ? ax : ay, high = steep ? ay : ax;
    const T flat = atan_positive(low != high ? low / high : high == 0 ? high : T(1));
    const T r = steep ? pi<T> / 2 - flat : flat;
    return sycl::copysign(sycl::signbit(x) ? pi<T> - r : r, y);
  }
};
}  // namespace

#define TRIGONOMETRY(suffix, T)        \
  XPU_UNARY(sin_##suffix, Sin, T, T)   \
  XPU_UNARY(cos_##suffix, Cos, T, T)   \
  XPU_UNARY(tan_##suffix, Tan, T, T)   \
  XPU_UNARY(asin_##suffix, Asin, T, T) \
  XPU_UNARY(acos_##suffix, Acos, T, T) \
  XPU_UNARY(atan_##suffix, Atan, T, T) \
  XPU_BINARY(atan2_##suffix, Atan2, T, T, T)
XPU_FLOATS(TRIGONOMETRY)
