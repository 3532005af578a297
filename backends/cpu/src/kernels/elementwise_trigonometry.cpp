// sin cos tan asin acos atan atan2: floats in double, float64 by the C library.
#include <cmath>

#include "simd/math_loops.hpp"
#include "simd/wide_trigonometry.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using wide::D;
#define DOVETAIL_CPU_FUNCTION(Name, name)                                 \
  struct Name {                                                           \
    DOVETAIL_CPU_INLINE D operator()(D x) const { return wide::name(x); } \
  }
// Of several vectors.
#define DOVETAIL_CPU_FUNCTION_OF_SEVERAL(Name, name)       \
  struct Name {                                            \
    static constexpr int at_once = 4;                      \
    template <int n>                                       \
    DOVETAIL_CPU_INLINE void operator()(D (&x)[n]) const { \
      wide::name(x);                                       \
    }                                                      \
    DOVETAIL_CPU_INLINE D operator()(D x) const {          \
      D one[] = {x};                                       \
      wide::name(one);                                     \
      return one[0];                                       \
    }                                                      \
  }
DOVETAIL_CPU_FUNCTION_OF_SEVERAL(Sin, sin);
DOVETAIL_CPU_FUNCTION_OF_SEVERAL(Cos, cos);
DOVETAIL_CPU_FUNCTION(Tan, tan);
DOVETAIL_CPU_FUNCTION(Asin, asin);
DOVETAIL_CPU_FUNCTION(Acos, acos);
DOVETAIL_CPU_FUNCTION(Atan, atan);
struct Atan2 {
  DOVETAIL_CPU_INLINE D operator()(D x, D y) const { return wide::atan2(x, y); }
};

template <class F, double (*f64)(double)>
void add(Table& t, const char* op) {
  math::add_unary<F, D, math::scalar_loop<f64>>(t, op);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  add<Sin, ::sin>(t, "dvt.sin");
  add<Cos, ::cos>(t, "dvt.cos");
  add<Tan, ::tan>(t, "dvt.tan");
  add<Asin, ::asin>(t, "dvt.asin");
  add<Acos, ::acos>(t, "dvt.acos");
  add<Atan, ::atan>(t, "dvt.atan");
  math::add_binary<Atan2, D, math::scalar_loop2<::atan2>>(t, "dvt.atan2");
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
