// quotient, floor_divide, remainder; pow of integers.
#include <cmath>
#include <type_traits>

#include "simd/elementwise.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
// Truncating. x / 0 is 0; the most negative number by -1 wraps.
template <class T>
T quotient(T a, T b) {
  using U = std::make_unsigned_t<T>;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return T(U(0) - U(a));
  return b == 0 ? T(0) : T(a / b);
}
struct Quotient {
  template <class T>
  T operator()(T a, T b) const {
    return quotient(a, b);
  }
};

// C's fmod. For floats it is exact in double if quotient and divisor together have at most 53 bits.
inline double truncated_remainder(double a, double b) { return std::fmod(a, b); }
inline float truncated_remainder(float a, float b) {
  const double x = a, y = b, q = x / y;
  if (!(std::fabs(q) < 0x1p28)) return std::fmod(a, b);
  const double n = std::trunc(q);
  return n == 0 ? a : float(x - n * y);  // and an infinite divisor returns a
}

// The result has the sign of the divisor, as in Python. By zero: integers 0, floats NaN.
template <class T>
T remainder(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const T r = truncated_remainder(a, b);
    if (r == 0) return std::is_same_v<T, float> ? T(__builtin_copysignf(0, float(b))) : T(__builtin_copysign(0, b));
    return (r < 0) != (b < 0) ? r + b : r;
  } else if constexpr (std::is_signed_v<T>) {
    const T r = b == 0 || b == -1 ? T(0) : T(a % b);
    return r != 0 && (r < 0) != (b < 0) ? T(r + b) : r;
  } else {
    return b == 0 ? T(0) : T(a % b);
  }
}
struct Remainder {
  template <class T>
  T operator()(T a, T b) const {
    return remainder(a, b);
  }
};

// Rounded down. Floats: the floor of the rounded quotient, so inf // 1 is inf.
struct FloorDivide {
  float operator()(float a, float b) const { return __builtin_floorf(a / b); }
  double operator()(double a, double b) const { return __builtin_floor(a / b); }
  template <class T>
  T operator()(T a, T b) const {
    const T q = quotient(a, b);
    if constexpr (std::is_signed_v<T>) return b != 0 && b != -1 && a % b != 0 && (a < 0) != (b < 0) ? T(q - 1) : q;
    else return q;
  }
};

// By repeated squaring, wrapping. A negative exponent gives 1 / x^|y| truncated, or 0 if x is 0.
struct Power {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_signed_v<T>)
      if (y < 0) return x == 1 ? T(1) : x == -1 ? (y & 1 ? T(-1) : T(1)) : T(0);
    using U = std::conditional_t<(sizeof(T) < 4), unsigned, std::make_unsigned_t<T>>;
    U result = 1, base = U(x);
    for (auto n = std::make_unsigned_t<T>(y); n; n >>= 1, base *= base)
      if (n & 1) result *= base;
    return T(result);
  }
};

template <class Op>
void add_integers(Table& t, const char* op) {
  add_binary<Op, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(t, op);
}
template <class Op>
void add_floats(Table& t, const char* op) {
  add_binary<Op, float, double>(t, op);
  add_binary_half<Op>(t, op);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  add_integers<Quotient>(t, "dvt.quotient");
  add_integers<FloorDivide>(t, "dvt.floor_divide");
  add_integers<Remainder>(t, "dvt.remainder");
  add_integers<Power>(t, "dvt.pow");
  add_floats<FloorDivide>(t, "dvt.floor_divide");
  add_floats<Remainder>(t, "dvt.remainder");
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
