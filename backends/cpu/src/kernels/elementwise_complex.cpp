// add subtract multiply divide, negative conj abs square reciprocal, of complex64 and complex128. Devices without
// these rows compute with pairs of floats, in several kernels each (core/schema/ops/complex_arithmetic.py).
#include <cstring>
#include <experimental/simd>
#include <utility>

#include "dovetail/functors.hpp"
#include "simd/complex.hpp"
#include "simd/elementwise.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using dvt::math::abs;

struct Sum {
  template <class T>
  Complex<T> operator()(Complex<T> a, Complex<T> b) const {
    return {a.re + b.re, a.im + b.im};
  }
};
struct Difference {
  template <class T>
  Complex<T> operator()(Complex<T> a, Complex<T> b) const {
    return {a.re - b.re, a.im - b.im};
  }
};

// Products. Compilers make multiply-adds of the two parts' own expressions, even where they may not contract any;
// vectors of all parts say that each product is rounded.
template <class T>
class Products {
 public:
  static void multiply(const void* const* in, const int64_t* step, void* out, int64_t n) {
    const auto *a = static_cast<const Number*>(in[0]), *b = static_cast<const Number*>(in[1]);
    auto* y = static_cast<Number*>(out);
    const Parts one_a = step[0] ? Parts{} : repeated(*a), one_b = step[1] ? Parts{} : repeated(*b);
    int64_t i = 0;
    for (; i + width <= n; i += width) {
      const Parts result = product(step[0] ? load(a + i) : one_a, step[1] ? load(b + i) : one_b);
      std::memcpy(y + i, &result, sizeof result);
    }
    if (i == n) return;
    Number rest[2][width] = {};
    const size_t bytes = size_t(n - i) * sizeof(Number);
    if (step[0]) std::memcpy(rest[0], a + i, bytes);
    if (step[1]) std::memcpy(rest[1], b + i, bytes);
    const Parts result = product(step[0] ? load(rest[0]) : one_a, step[1] ? load(rest[1]) : one_b);
    std::memcpy(y + i, &result, bytes);
  }
  static void square(const void* const* in, const int64_t*, void* out, int64_t n) {
    const void* const both[] = {in[0], in[0]};
    constexpr int64_t steps[] = {1, 1};
    multiply(both, steps, out, n);
  }

 private:
  using Number = Complex<T>;
  static constexpr int64_t width = sizeof(std::experimental::native_simd<T>) / sizeof(Number);  // of a vector
  typedef T Parts __attribute__((vector_size(2 * width * sizeof(T))));

  template <int64_t... i>
  static Parts product(Parts a, Parts b, std::integer_sequence<int64_t, i...>) {
    const Parts real = __builtin_shufflevector(b, b, (i & ~1)...), imag = __builtin_shufflevector(b, b, (i | 1)...);
    const Parts crossed = __builtin_shufflevector(a, a, (i ^ 1)...) * imag;
    constexpr Parts signs = {(i & 1 ? T(1) : T(-1))...};
    return a * real + signs * crossed;
  }
  static Parts product(Parts a, Parts b) { return product(a, b, std::make_integer_sequence<int64_t, 2 * width>()); }
  static Parts repeated(Number x) {
    Parts all;
    for (int64_t i = 0; i < 2 * width; i += 2) all[i] = x.re, all[i + 1] = x.im;
    return all;
  }
  static Parts load(const Number* x) {
    Parts all;
    std::memcpy(&all, x, sizeof all);
    return all;
  }
};

// R. L. Smith, Algorithm 116: Complex division, Communications of the ACM 5 (1962).
struct Quotient {
  template <class T>
  Complex<T> operator()(Complex<T> a, Complex<T> b) const {
    const bool steep = abs(b.re) < abs(b.im);
    const T big = steep ? b.im : b.re, small = steep ? b.re : b.im;
    const T ratio = small / big, r = small == 0 ? T(0) : ratio, size = big + small * r;
    const T u = steep ? a.im : a.re, v = steep ? a.re : a.im;
    return {(u + v * r) / size, (steep ? u * r - v : v - u * r) / size};
  }
};

struct Negative {
  template <class T>
  Complex<T> operator()(Complex<T> x) const {
    return {-x.re, -x.im};
  }
};
struct Conjugate {
  template <class T>
  Complex<T> operator()(Complex<T> x) const {
    return {x.re, -x.im};
  }
};
struct Reciprocal {
  template <class T>
  Complex<T> operator()(Complex<T> x) const {
    return Quotient()(Complex<T>{1, 0}, x);
  }
};
// The length; an infinite part wins over NaN. Powers of two keep its square from overflow and from what is
// subnormal.
struct Length {
  template <class T>
  T operator()(Complex<T> x) const {
    constexpr bool wide = sizeof(T) == 8;
    constexpr T low = wide ? 0x1p-450 : 0x1p-50, high = wide ? 0x1p500 : 0x1p60, k = wide ? 0x1p600 : 0x1p80;
    const T a = abs(x.re), b = abs(x.im), big = a < b ? b : a;
    const T up = big < low ? k : T(1), scale = big > high ? 1 / k : up,
            back = big > high  ? k
                   : big < low ? 1 / k
                               : T(1);
    const T u = a * scale, v = b * scale, length = dvt::math::sqrt(u * u + v * v) * back;
    constexpr T infinity = dvt::math::infinity<T>;
    return (a == infinity) | (b == infinity) ? infinity : length;
  }
};

template <class Op>
void add_two(Table& t, const char* op) {
  add_elementwise(t, op, kernel<binary<Op, Complex<float>, Complex<float>>>, dvt::c64, dvt::c64);
  add_elementwise(t, op, kernel<binary<Op, Complex<double>, Complex<double>>>, dvt::c128, dvt::c128);
}
template <class Op>
void add_one(Table& t, const char* op) {
  add_elementwise(t, op, kernel<unary<Op, Complex<float>, Complex<float>>>, dvt::c64, dvt::c64);
  add_elementwise(t, op, kernel<unary<Op, Complex<double>, Complex<double>>>, dvt::c128, dvt::c128);
}
template <class T>
inline constexpr Elementwise multiply{
    Products<T>::multiply, 2, {sizeof(Complex<T>), sizeof(Complex<T>)}, sizeof(Complex<T>), true};
template <class T>
inline constexpr Elementwise square{Products<T>::square, 1, {sizeof(Complex<T>)}, sizeof(Complex<T>)};
template <class T>
void add_products(Table& t, DLDataType type) {
  add_elementwise(t, "dvt.multiply", kernel<multiply<T>>, type, type);
  add_elementwise(t, "dvt.square", kernel<square<T>>, type, type);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  add_two<Sum>(t, "dvt.add");
  add_two<Difference>(t, "dvt.subtract");
  add_two<Quotient>(t, "dvt.divide");
  add_one<Negative>(t, "dvt.negative");
  add_one<Conjugate>(t, "dvt.conj");
  add_products<float>(t, dvt::c64);
  add_products<double>(t, dvt::c128);
  add_one<Reciprocal>(t, "dvt.reciprocal");
  add_elementwise(t, "dvt.abs", kernel<unary<Length, float, Complex<float>>>, dvt::c64, dvt::f32);
  add_elementwise(t, "dvt.abs", kernel<unary<Length, double, Complex<double>>>, dvt::c128, dvt::f64);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
