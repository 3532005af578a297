// The functions of src/kernels/common for test_math.py: each as a loop over arrays, <name>_f32 and <name>_f64; and
// what NumPy lacks, in long double.
#include <cstddef>

#include "kernels/common/division.cuh"
#include "kernels/common/hyperbolic.cuh"
#include "kernels/common/power.cuh"
#include "kernels/common/special.cuh"
#include "kernels/common/trigonometry.cuh"

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
#define UNARY(name) BOTH(name, gpu::math::name(a))
#define BINARY(name) BOTH(name, gpu::math::name(a, b))

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
