// dovetail/math*.hpp and dovetail/floats.hpp for test_math_functions.py and test_floats.py: each function as a loop
// over arrays, <name>_f32 and <name>_f64; and the functions that NumPy lacks, in long double.
#include <cstddef>

#include "dovetail/floats.hpp"
#include "dovetail/math_power.hpp"
#include "dovetail/math_special.hpp"
#include "dovetail/math_trigonometry.hpp"

#define LOOP(name, T, result)                                      \
  extern "C" void name(const T* x1, const T* x2, T* y, size_t n) { \
    for (size_t i = 0; i < n; ++i) {                               \
      [[maybe_unused]] const T a = x1[i], b = x2[i];               \
      y[i] = result;                                               \
    }                                                              \
  }
#define BOTH(name, result)        \
  LOOP(name##_f32, float, result) \
  LOOP(name##_f64, double, result)
#define UNARY(name) BOTH(name, dvt::math::name(a))
#define BINARY(name) BOTH(name, dvt::math::name(a, b))

UNARY(exp)
UNARY(exp2)
UNARY(expm1)
UNARY(log)
UNARY(log2)
UNARY(log10)
UNARY(log1p)
UNARY(sinh)
UNARY(cosh)
UNARY(tanh)
UNARY(asinh)
UNARY(acosh)
UNARY(atanh)
UNARY(sin)
UNARY(cos)
UNARY(tan)
UNARY(asin)
UNARY(acos)
UNARY(atan)
UNARY(sqrt)
UNARY(rsqrt)
UNARY(erf)
UNARY(erfc)
UNARY(normal_gate)
BINARY(pow)
BINARY(hypot)
BINARY(logaddexp)
BINARY(atan2)
BINARY(remainder)
BINARY(gate)

LOOP(erf_exact, long double, ::erfl(a))
LOOP(erfc_exact, long double, ::erfcl(a))

#define CONVERSION(name, From, To, result)               \
  extern "C" void name(const From* x, To* y, size_t n) { \
    for (size_t i = 0; i < n; ++i) y[i] = result(x[i]);  \
  }
template <class To, class From>
auto bits_of(From x) {
  return dvt::convert<To>(x).bits;
}
#define NARROWING(suffix, From)                                                \
  CONVERSION(bf16_of_##suffix, From, uint16_t, bits_of<dvt::bfloat16>)         \
  CONVERSION(f16_of_##suffix, From, uint16_t, bits_of<dvt::half>)              \
  CONVERSION(f8e4m3fn_of_##suffix, From, uint8_t, bits_of<dvt::float8_e4m3fn>) \
  CONVERSION(f8e5m2_of_##suffix, From, uint8_t, bits_of<dvt::float8_e5m2>)
NARROWING(f32, float)
NARROWING(f64, double)
NARROWING(i64, int64_t)
NARROWING(u64, uint64_t)
CONVERSION(f32_of_f16, uint16_t, uint32_t, dvt::float32_of_f16)
CONVERSION(f32_of_bf16, uint16_t, uint32_t, dvt::float32_of_bf16)
