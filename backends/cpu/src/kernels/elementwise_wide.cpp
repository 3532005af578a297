// exp2 expm1 log2 log10 log1p sinh cosh asinh acosh atanh erfc pow: floats in double, float64 by the C library, but
// for erfc.
#include <cmath>

#include "simd/double_exponential.hpp"
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
#define DOVETAIL_CPU_FUNCTION64(Name, name)                                  \
  struct Name##64 {                                                          \
    DOVETAIL_CPU_INLINE D operator()(D x) const { return doubles::name(x); } \
  }
DOVETAIL_CPU_FUNCTION64(Exp2, exp2);
DOVETAIL_CPU_FUNCTION64(Expm1, expm1);
DOVETAIL_CPU_FUNCTION64(Sinh, sinh);
DOVETAIL_CPU_FUNCTION64(Cosh, cosh);
DOVETAIL_CPU_FUNCTION64(Erfc, erfc);
struct Pow {
  DOVETAIL_CPU_INLINE D operator()(D x, D y) const { return wide::pow(x, y); }
};

template <class F, double (*f64)(double)>
void add(Table& t, const char* op) {
  math::add_unary<F, D, math::scalar_loop<f64>>(t, op);
}
template <class F, class F64>
void add(Table& t, const char* op) {
  math::add_unary<F, D, math::vector_loop<F64, D, double>>(t, op);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  add<Exp2, Exp264>(t, "dvt.exp2");
  add<Expm1, Expm164>(t, "dvt.expm1");
  add<Log2, ::log2>(t, "dvt.log2");
  add<Log10, ::log10>(t, "dvt.log10");
  add<Log1p, ::log1p>(t, "dvt.log1p");
  add<Sinh, Sinh64>(t, "dvt.sinh");
  add<Cosh, Cosh64>(t, "dvt.cosh");
  add<Asinh, ::asinh>(t, "dvt.asinh");
  add<Acosh, ::acosh>(t, "dvt.acosh");
  add<Atanh, ::atanh>(t, "dvt.atanh");
  add<Erfc, Erfc64>(t, "dvt.erfc");
  math::add_binary<Pow, D, math::scalar_loop2<::pow>>(t, "dvt.pow");
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
