// exp2 expm1 log2 log10 log1p sinh cosh asinh acosh atanh erfc pow: in double; without fused multiply-add,
// logarithms and powers of float64 are the C library's.
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
struct Pow {
  DOVETAIL_CPU_INLINE D operator()(D x, D y) const { return wide::pow(x, y); }
};

#if defined(DOVETAIL_CPU_FMA)
#define DOVETAIL_CPU_LOGARITHM64(name) math::loop64<doubles::name>
#else
#define DOVETAIL_CPU_LOGARITHM64(name) math::scalar_loop<::name>
#endif
#if defined(DOVETAIL_CPU_POWER)
void pow64(const void* const* in, const int64_t* step, void* out, int64_t n) {
  [[maybe_unused]] const math::ExtendedPrecision precision{};  // the C library computes some results
  math::loop64x2<doubles::pow>(in, step, out, n);
}
#else
constexpr Loop pow64 = math::scalar_loop2<::pow>;
#endif
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  math::add_unary<Exp2, D, math::loop64<doubles::exp2>>(t, "dvt.exp2");
  math::add_unary<Expm1, D, math::loop64<doubles::expm1>>(t, "dvt.expm1");
  math::add_unary<Log2, D, DOVETAIL_CPU_LOGARITHM64(log2)>(t, "dvt.log2");
  math::add_unary<Log10, D, DOVETAIL_CPU_LOGARITHM64(log10)>(t, "dvt.log10");
  math::add_unary<Log1p, D, DOVETAIL_CPU_LOGARITHM64(log1p)>(t, "dvt.log1p");
  math::add_unary<Sinh, D, math::loop64<doubles::sinh>>(t, "dvt.sinh");
  math::add_unary<Cosh, D, math::loop64<doubles::cosh>>(t, "dvt.cosh");
  math::add_unary<Asinh, D, DOVETAIL_CPU_LOGARITHM64(asinh)>(t, "dvt.asinh");
  math::add_unary<Acosh, D, DOVETAIL_CPU_LOGARITHM64(acosh)>(t, "dvt.acosh");
  math::add_unary<Atanh, D, DOVETAIL_CPU_LOGARITHM64(atanh)>(t, "dvt.atanh");
  math::add_unary<Erfc, D, math::loop64<doubles::erfc>>(t, "dvt.erfc");
  math::add_binary<Pow, D, pow64>(t, "dvt.pow");
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
