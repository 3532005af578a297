// dovetail/functors.hpp - the elementwise operations as function objects over elements: integers, bool, float and
// double. float16 and others are widened first (Compute in floats.hpp). C++17, header-only, for hosts and
// kernels (portable.hpp).
#ifndef DOVETAIL_FUNCTORS_HPP
#define DOVETAIL_FUNCTORS_HPP

#include <type_traits>

#include "dovetail/floats.hpp"
#include "dovetail/math.hpp"
#include "dovetail/math_power.hpp"
#include "dovetail/math_special.hpp"
#include "dovetail/math_trigonometry.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
namespace functors {
// Functors with a long program derive from it: a device may call them rather than inline them many times.
struct Long {};

// struct Name: operator()(a, b...) returns `result`, of the type Result, which may name T.
#define DVT_UNARY(Name, Result, result)   \
  struct Name {                           \
    template <class T>                    \
    DVT_FN Result operator()(T x) const { \
      return result;                      \
    }                                     \
  }
#define DVT_BINARY(Name, Result, result)       \
  struct Name {                                \
    template <class T>                         \
    DVT_FN Result operator()(T a, T b) const { \
      return result;                           \
    }                                          \
  }
// struct Name: a long function of floats, with as many parameters as it takes.
#define DVT_LONG_FUNCTION(Name, function)  \
  struct Name : Long {                     \
    template <class... T>                  \
    DVT_FN auto operator()(T... x) const { \
      return function(x...);               \
    }                                      \
  }

// ---- arithmetic

// Integers wrap: they are computed as unsigned 64-bit integers, whose lower bits are kept.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
DVT_BINARY(Add, T, T(Wide<T>(a) + Wide<T>(b)));
DVT_BINARY(Subtract, T, T(Wide<T>(a) - Wide<T>(b)));
DVT_BINARY(Multiply, T, T(Wide<T>(a) * Wide<T>(b)));
DVT_BINARY(Divide, T, a / b);
DVT_BINARY(Maximum, T, a > b || a != a ? a : b);  // NaN wins
DVT_BINARY(Minimum, T, a < b || a != a ? a : b);
struct Clip {
  template <class T>
  DVT_FN T operator()(T x, T least, T most) const {
    return Minimum()(Maximum()(x, least), most);
  }
};

// ---- division

struct Quotient {  // of integers: x / 0 is 0, and the least integer / -1 is itself
  template <class T>
  DVT_FN T operator()(T a, T b) const {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == T(-1)) return T(uint64_t(0) - uint64_t(a));
    return T(a / b);
  }
};
struct FloorDivide {  // for floats the floor of the rounded quotient
  template <class T>
  DVT_FN T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      const T q = Quotient()(a, b);
      return std::is_signed_v<T> && b != 0 && (a ^ b) < 0 && q * b != a ? T(q - 1) : q;
    } else return math::floor(a / b);
  }
};
struct Remainder {  // with the sign of b; for integers x % 0 is 0
  template <class T>
  DVT_FN T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      const T r = b == 0 || (std::is_signed_v<T> && b == T(-1)) ? T(0) : T(a % b);
      return std::is_signed_v<T> && r != 0 && (r ^ b) < 0 ? T(r + b) : r;
    } else return math::remainder(a, b);
  }
};

// ---- bits

DVT_BINARY(BitwiseAnd, T, T(a& b));
DVT_BINARY(BitwiseOr, T, T(a | b));
DVT_BINARY(BitwiseXor, T, T(a ^ b));
// Counts below 0 or from the type's width on shift every bit out: the sign is left, or 0.
struct ShiftLeft {
  template <class T>
  DVT_FN T operator()(T a, T b) const {
    return uint64_t(b) < 8 * sizeof(T) ? T(uint64_t(a) << uint64_t(b)) : T(0);
  }
};
struct ShiftRight {
  template <class T>
  DVT_FN T operator()(T a, T b) const {
    return uint64_t(b) < 8 * sizeof(T) ? T(a >> b) : T(is_negative(a) ? -1 : 0);
  }
};

// ---- comparisons and logic: any number but 0 is true

DVT_BINARY(Equal, bool, a == b);
DVT_BINARY(NotEqual, bool, a != b);
DVT_BINARY(Less, bool, a < b);
DVT_BINARY(LessEqual, bool, a <= b);
DVT_BINARY(GreaterEqual, bool, a >= b);
DVT_UNARY(IsInf, bool, math::abs(x) == math::infinity<T>);
DVT_UNARY(IsFinite, bool, math::abs(x) < math::infinity<T>);
DVT_BINARY(LogicalAnd, bool, (a != 0) & (b != 0));
DVT_BINARY(LogicalOr, bool, (a != 0) | (b != 0));
DVT_BINARY(LogicalXor, bool, (a != 0) != (b != 0));
DVT_UNARY(LogicalNot, bool, x == 0);

// ---- selection and conversion

DVT_UNARY(Identity, T, x);
struct Where {
  template <class T>
  DVT_FN T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};
template <class To, class From>
struct Convert {
  DVT_FN To operator()(Compute<From> x) const { return convert<To>(x); }
};

// ---- signs and rounding

DVT_UNARY(Sign, T, x != x ? x : T((x > 0) - is_negative(x)));          // NaN stays
DVT_UNARY(Abs, T, is_negative(x) ? T(uint64_t(0) - uint64_t(x)) : x);  // of integers; the least is its own
DVT_BINARY(Copysign, T, math::copysign(a, b));
struct Floor {
  template <class T>
  DVT_FN T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) return x;
    else return math::floor(x);
  }
};
DVT_UNARY(Ceil, T, math::ceil(x));
DVT_UNARY(Trunc, T, math::trunc(x));
DVT_UNARY(Round, T, math::round(x));
struct Nextafter {  // from 0 to the least number with the sign of y
  template <class T>
  DVT_FN T operator()(T x, T y) const {
    using Bits = math::Bits<T>;
    if (x == y || x != x || y != y) return x == y ? y : x + y;
    if (x == 0) return math::copysign(bit_cast<T>(Bits(1)), y);
    const bool outwards = (x < y) == (x > 0);
    return bit_cast<T>(Bits(math::bits(x) + (outwards ? Bits(1) : Bits(-1))));
  }
};

// ---- functions

DVT_LONG_FUNCTION(Exp, math::exp);
DVT_LONG_FUNCTION(Expm1, math::expm1);
DVT_LONG_FUNCTION(Log, math::log);
DVT_LONG_FUNCTION(Log1p, math::log1p);
DVT_LONG_FUNCTION(Sqrt, math::sqrt);
DVT_LONG_FUNCTION(Rsqrt, math::rsqrt);
DVT_LONG_FUNCTION(Exp2, math::exp2);
DVT_LONG_FUNCTION(Log2, math::log2);
DVT_LONG_FUNCTION(Log10, math::log10);
DVT_LONG_FUNCTION(Hypot, math::hypot);
DVT_LONG_FUNCTION(Logaddexp, math::logaddexp);
DVT_LONG_FUNCTION(Sin, math::sin);
DVT_LONG_FUNCTION(Cos, math::cos);
DVT_LONG_FUNCTION(Tan, math::tan);
DVT_LONG_FUNCTION(Asin, math::asin);
DVT_LONG_FUNCTION(Acos, math::acos);
DVT_LONG_FUNCTION(Atan, math::atan);
DVT_LONG_FUNCTION(Atan2, math::atan2);
DVT_LONG_FUNCTION(Sinh, math::sinh);
DVT_LONG_FUNCTION(Cosh, math::cosh);
DVT_LONG_FUNCTION(Tanh, math::tanh);
DVT_LONG_FUNCTION(Asinh, math::asinh);
DVT_LONG_FUNCTION(Acosh, math::acosh);
DVT_LONG_FUNCTION(Atanh, math::atanh);
DVT_LONG_FUNCTION(Erf, math::erf);
DVT_LONG_FUNCTION(Erfc, math::erfc);

struct Pow : Long {
  template <class T>
  DVT_FN T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) return integer_power(x, y);
    else return math::pow(x, y);
  }

 private:
  // By repeated squaring, wrapping. A negative exponent: 1 / x^|y| truncated, and 0 where x is 0.
  template <class T>
  static DVT_FN T integer_power(T x, T y) {
    if (is_negative(y)) return x == 1 ? T(1) : x == T(-1) ? T(y & 1 ? -1 : 1) : T(0);
    std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t> result = 1, base = x;
    for (auto n = std::make_unsigned_t<T>(y); n; n = n >> 1, base *= base)
      if (n & 1) result *= base;
    return T(result);
  }
};

// ---- activations

DVT_UNARY(Relu, T, x > 0 || x != x ? x : T(0));  // NaN stays
struct LeakyRelu {
  template <class T>
  DVT_FN T operator()(T x, T slope) const {
    return x < 0 ? x * slope : x;
  }
};
struct Elu : Long {
  template <class T>
  DVT_FN T operator()(T x, T alpha) const {
    return x > 0 ? x : math::expm1(x) * alpha;
  }
};
struct Selu : Long {
  template <class T>
  DVT_FN T operator()(T x) const {
    constexpr T alpha = T(1.6732632423543772), scale = T(1.0507009873554805);
    return x > 0 ? x * scale : math::expm1(x) * (alpha * scale);
  }
};
struct Softplus : Long {  // x * beta may overflow
  template <class T>
  DVT_FN T operator()(T x, T beta) const {
    const T bound = (beta > 0) == (x > 0) ? x : T(0);
    return math::log1p(math::exp(-math::abs(x * beta))) / beta + bound;
  }
};
struct Logsigmoid : Long {
  template <class T>
  DVT_FN T operator()(T x) const {
    return -Softplus()(-x, T(1));
  }
};
struct Hardsigmoid {
  template <class T>
  DVT_FN T operator()(T x) const {
    const T y = (x + 3) / 6;
    return y < 0 ? T(0) : y > 1 ? T(1) : y;
  }
};
struct Hardswish {  // 0 for x <= -3, also where x is -infinity
  template <class T>
  DVT_FN T operator()(T x) const {
    return (x < -3 ? T(-3) : x) * Hardsigmoid()(x);
  }
};
struct Sigmoid : Long {
  template <class T>
  DVT_FN T operator()(T x) const {
    const T e = math::exp(-math::abs(x));
    return (x < 0 ? e : T(1)) / (1 + e);
  }
};
// x, limited to where x exp(x) is already 0: an infinity would be multiplied by 0.
template <class T>
DVT_FN T above_vanished(T x) {
  const T vanished = sizeof(T) == 8 ? T(-1600) : T(-250);
  return x < vanished ? vanished : x;
}
struct Silu : Long {
  template <class T>
  DVT_FN T operator()(T x) const {
    return math::gate(above_vanished(x), x);
  }
};
struct Mish : Long {  // x tanh(softplus(x)); exp(-|x|) is applied as a square, as in gate
  template <class T>
  DVT_FN T operator()(T x) const {
    x = above_vanished(x);
    const T half = math::exp(math::abs(x) * T(-0.5)), e = half * half, large = 1 + 2 * e;
    return x < 0 ? x * half * half * (e + 2) / (e * (e + 2) + 2) : x * (large / (large + 2 * e * e));
  }
};
DVT_LONG_FUNCTION(Gelu, math::normal_gate);
struct GeluTanh : Long {  // x (1 + tanh(z / 2)) / 2 = x sigmoid(z)
  template <class T>
  DVT_FN T operator()(T x) const {
    x = x < -25 ? T(-25) : x;
    return math::gate(x, x * (T(1.5957691216057308) + x * x * T(0.07135481627260025)));
  }
};
#undef DVT_UNARY
#undef DVT_BINARY
#undef DVT_LONG_FUNCTION
}  // namespace functors
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_FUNCTORS_HPP
