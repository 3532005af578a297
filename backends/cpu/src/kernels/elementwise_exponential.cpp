// exp log sqrt rsqrt tanh erf, and the activations sigmoid silu gelu: in float, those of float64 in double.
#include <cmath>

#include "simd/double_exponential.hpp"
#include "simd/double_logarithm.hpp"
#include "simd/math_loops.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using math::V;
#define DOVETAIL_CPU_FUNCTION(Name, X, expression)                     \
  struct Name {                                                        \
    DOVETAIL_CPU_INLINE X operator()(X x) const { return expression; } \
  }
DOVETAIL_CPU_FUNCTION(Exp, V, math::exp(x));
DOVETAIL_CPU_FUNCTION(Log, V, math::log(x));
DOVETAIL_CPU_FUNCTION(Sqrt, V, math::stdx::sqrt(x));
DOVETAIL_CPU_FUNCTION(Rsqrt, V, 1 / math::stdx::sqrt(x));
#if defined(__AVX512F__)
DOVETAIL_CPU_FUNCTION(Tanh, V, math::tanh(x));
#else
DOVETAIL_CPU_FUNCTION(Tanh, wide::D, wide::tanh(x));
#endif
DOVETAIL_CPU_FUNCTION(Erf, V, math::erf(x));
DOVETAIL_CPU_FUNCTION(Sigmoid, V, math::sigmoid(x));
DOVETAIL_CPU_FUNCTION(Silu, V, math::silu(x));
DOVETAIL_CPU_FUNCTION(Gelu, V, math::gelu(x));
DOVETAIL_CPU_FUNCTION(GeluTanh, wide::D, wide::gelu_tanh(x));

double square_root(double x) { return __builtin_sqrt(x); }
double rsqrt(double x) { return 1 / __builtin_sqrt(x); }

#if defined(DOVETAIL_CPU_FMA)
constexpr Loop log64 = math::loop64<doubles::log>;
#else
constexpr Loop log64 = math::scalar_loop<::log>;
#endif

template <class F, double (*f64)(double), class X = V>
void add(Table& t, const char* op) {
  math::add_unary<F, X, math::scalar_loop<f64>>(t, op);
}

// One row for both kinds of gelu: the attribute selects.
template <const Elementwise& exact, const Elementwise& approximate>
dvt_status run_gelu(dvt_device*, const dvt_call* c) {
  const dvt::Attrs a(c);
  if (a.is(0, "tanh")) return run_elementwise(approximate, c);
  if (!a.given(0) || a.is(0, "none")) return run_elementwise(exact, c);
  return DVT_FAIL(DVT_INVALID, "[gelu] approximate is unknown: expected \"none\" or \"tanh\", got \"%.*s\"",
                  int(c->attr[0].count), c->attr[0].v.s);
}
template <const Elementwise& exact, const Elementwise& approximate>
void add_gelu(Table& t, DLDataType type) {
  add_elementwise_row(t, "dvt.gelu", run_gelu<exact, approximate>, 1, type, type);
  t.add_loop({"dvt.gelu", &exact, nullptr, {type}, type, "none"});
  t.add_loop({"dvt.gelu", &approximate, nullptr, {type}, type, "tanh"});
}
void add_gelu(Table& t) {
  using namespace math;
  using wide::D;
  add_gelu<spec32<Gelu>, spec32<GeluTanh, D>>(t, dvt::f32);
  add_gelu<spec64<loop64<doubles::gelu>>, spec64<loop64<doubles::gelu_tanh>>>(t, dvt::f64);
  add_gelu<spec16<Gelu, Half::f16>, spec16<GeluTanh, Half::f16, D>>(t, dvt::f16);
  add_gelu<spec16<Gelu, Half::bf16>, spec16<GeluTanh, Half::bf16, D>>(t, dvt::bf16);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  math::add_unary<Exp, V, math::loop64<doubles::exp>>(t, "dvt.exp");
  math::add_unary<Log, V, log64>(t, "dvt.log");
  add<Sqrt, square_root>(t, "dvt.sqrt");
  add<Rsqrt, rsqrt>(t, "dvt.rsqrt");
  math::add_unary<Tanh, decltype(Tanh()({})), math::loop64<doubles::tanh>>(t, "dvt.tanh");
  math::add_unary<Erf, V, math::loop64<doubles::erf>>(t, "dvt.erf");
  math::add_unary<Sigmoid, V, math::loop64<doubles::sigmoid>>(t, "dvt.sigmoid");
  math::add_unary<Silu, V, math::loop64<doubles::silu>>(t, "dvt.silu");
  add_gelu(t);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
