// exp2 expm1 log2 log10 log1p sinh cosh asinh acosh atanh erfc pow: in double; without
// fused multiply-add, logarithms and powers of float64 are the C library's.
#include <cmath>

#include "simd/double_exponential.hpp"
#include "simd/double_power.hpp"
#include "simd/math_loops.hpp"
#include "simd/wide_power.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using wide::D;
#define DOVETAIL_CPU_FUNCTION(Name, name)                                 \
  struct Name {                                                           \
    DOVETAIL_CPU_INLINE D operator()(D x) const { return wide::name(x); } \
  }
DOVETAIL_CPU_FUNCTION(Exp2, exp2);
DOVETAIL_CPU_FUNCTION(Expm1, expm1);
DOVETAIL_CPU_FUNCTION(Log2, log2);
DOVETAIL_CPU_FUNCTION(Log10, log10);
DOVETAIL_CPU_FUNCTION(Log1p, log1p);
DOVETAIL_CPU_FUNCTION(Sinh, sinh);
DOVETAIL_CPU_FUNCTION(Cosh, cosh);
DOVETAIL_CPU_FUNCTION(Asinh, asinh);
DOVETAIL_CPU_FUNCTION(Acosh, acosh);
DOVETAIL_CPU_FUNCTION(Atanh, atanh);
DOVETAIL_CPU_FUNCTION(Erfc, erfc);
#define DOVETAIL_CPU_VECTOR_LOOP64(name)                                     \
  struct name##_64 {                                                         \
    DOVETAIL_CPU_INLINE D operator()(D x) const { return doubles::name(x); } \
  };                                                                         \
  constexpr Loop name##_loop64 = math::vector_loop<name##_64, D, double>
DOVETAIL_CPU_VECTOR_LOOP64(exp2);
DOVETAIL_CPU_VECTOR_LOOP64(expm1);
DOVETAIL_CPU_VECTOR_LOOP64(sinh);
DOVETAIL_CPU_VECTOR_LOOP64(cosh);
DOVETAIL_CPU_VECTOR_LOOP64(erfc);
#if defined(DOVETAIL_CPU_FMA)
#define DOVETAIL_CPU_LOOP64 DOVETAIL_CPU_VECTOR_LOOP64
#else
#define DOVETAIL_CPU_LOOP64(name) constexpr Loop name##_loop64 = math::scalar_loop<::name>
#endif
DOVETAIL_CPU_LOOP64(log2);
DOVETAIL_CPU_LOOP64(log10);
DOVETAIL_CPU_LOOP64(log1p);
DOVETAIL_CPU_LOOP64(asinh);
DOVETAIL_CPU_LOOP64(acosh);
DOVETAIL_CPU_LOOP64(atanh);
struct Pow {
  DOVETAIL_CPU_INLINE D operator()(D x, D y) const { return wide::pow(x, y); }
};

#if defined(DOVETAIL_CPU_POWER)
struct Pow64 {
  DOVETAIL_CPU_INLINE D operator()(D x, D y) const { return doubles::pow(x, y); }
};
void pow_loop64(const void* const* in, const int64_t* step, void* out, int64_t n) {
  [[maybe_unused]] const math::ExtendedPrecision precision{};  // the C library computes some results
  math::vector_loop2<Pow64, D, double>(in, step, out, n);
}
#else
constexpr Loop pow_loop64 = math::scalar_loop2<::pow>;
#endif
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  math::add_unary<Exp2, D, exp2_loop64>(t, "dvt.exp2");
  math::add_unary<Expm1, D, expm1_loop64>(t, "dvt.expm1");
  math::add_unary<Log2, D, log2_loop64>(t, "dvt.log2");
  math::add_unary<Log10, D, log10_loop64>(t, "dvt.log10");
  math::add_unary<Log1p, D, log1p_loop64>(t, "dvt.log1p");
  math::add_unary<Sinh, D, sinh_loop64>(t, "dvt.sinh");
  math::add_unary<Cosh, D, cosh_loop64>(t, "dvt.cosh");
  math::add_unary<Asinh, D, asinh_loop64>(t, "dvt.asinh");
  math::add_unary<Acosh, D, acosh_loop64>(t, "dvt.acosh");
  math::add_unary<Atanh, D, atanh_loop64>(t, "dvt.atanh");
  math::add_unary<Erfc, D, erfc_loop64>(t, "dvt.erfc");
  math::add_binary<Pow, D, pow_loop64>(t, "dvt.pow");
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
