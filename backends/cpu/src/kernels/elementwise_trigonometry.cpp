// sin cos tan asin acos atan atan2: floats in double. float64 by vectors of sums of two doubles; by the C library
// at levels without fused multiply-add (see double_trigonometry.hpp).
#include <cmath>

#include "simd/double_trigonometry.hpp"
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
#define DOVETAIL_CPU_FUNCTION_OF_SEVERAL(Name, several, name) \
  struct Name {                                               \
    static constexpr int at_once = several;                   \
    template <int n>                                          \
    DOVETAIL_CPU_INLINE void operator()(D (&x)[n]) const {    \
      name(x);                                                \
    }                                                         \
    DOVETAIL_CPU_INLINE D operator()(D x) const {             \
      D one[] = {x};                                          \
      name(one);                                              \
      return one[0];                                          \
    }                                                         \
  }
DOVETAIL_CPU_FUNCTION_OF_SEVERAL(Sin, 4, wide::sin);
DOVETAIL_CPU_FUNCTION_OF_SEVERAL(Cos, 4, wide::cos);
DOVETAIL_CPU_FUNCTION(Tan, tan);
DOVETAIL_CPU_FUNCTION(Asin, asin);
DOVETAIL_CPU_FUNCTION(Acos, acos);
DOVETAIL_CPU_FUNCTION(Atan, atan);
struct Atan2 {
  DOVETAIL_CPU_INLINE D operator()(D x, D y) const { return wide::atan2(x, y); }
};

// The loops of float64.
#if defined(DOVETAIL_CPU_FMA)
#define DOVETAIL_CPU_LOOP64(name) math::loop64<doubles::name>
#define DOVETAIL_CPU_LOOP64X2(name) math::loop64x2<doubles::name>
DOVETAIL_CPU_FUNCTION_OF_SEVERAL(Asin64, 3, doubles::asin);
DOVETAIL_CPU_FUNCTION_OF_SEVERAL(Acos64, 3, doubles::acos);
constexpr Loop asin64 = math::vector_loop<Asin64, D, double>, acos64 = math::vector_loop<Acos64, D, double>;
#else
#define DOVETAIL_CPU_LOOP64(name) math::scalar_loop<::name>
#define DOVETAIL_CPU_LOOP64X2(name) math::scalar_loop2<::name>
constexpr Loop asin64 = math::scalar_loop<::asin>, acos64 = math::scalar_loop<::acos>;
#endif
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  math::add_unary<Sin, D, DOVETAIL_CPU_LOOP64(sin)>(t, "dvt.sin");
  math::add_unary<Cos, D, DOVETAIL_CPU_LOOP64(cos)>(t, "dvt.cos");
  math::add_unary<Tan, D, DOVETAIL_CPU_LOOP64(tan)>(t, "dvt.tan");
  math::add_unary<Asin, D, asin64>(t, "dvt.asin");
  math::add_unary<Acos, D, acos64>(t, "dvt.acos");
  math::add_unary<Atan, D, DOVETAIL_CPU_LOOP64(atan)>(t, "dvt.atan");
  math::add_binary<Atan2, D, DOVETAIL_CPU_LOOP64X2(atan2)>(t, "dvt.atan2");
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
