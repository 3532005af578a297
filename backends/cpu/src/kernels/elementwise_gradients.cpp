// gelu_grad silu_grad: a derivative times the gradient of the result, in float, those of float64 in double.
#include "simd/double_gradients.hpp"
#include "simd/math_loops.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using math::V;
using wide::D;
struct SiluGrad {
  DOVETAIL_CPU_INLINE V operator()(V x, V grad) const { return math::silu_slope(x) * grad; }
};
struct GeluGrad {
  DOVETAIL_CPU_INLINE V operator()(V x, V grad) const { return math::gelu_slope(x) * grad; }
};
struct GeluTanhGrad {
  // What vanishes in float is 0: infinity times it is NaN.
  DOVETAIL_CPU_INLINE D operator()(D x, D grad) const {
    const D slope = wide::gelu_tanh_slope(x);
    return wide::select(wide::abs(slope) < 0x1p-150, 0, slope) * grad;
  }
};

template <D (*slope)(D)>
DOVETAIL_CPU_INLINE D times_slope(D x, D grad) {
  return slope(x) * grad;
}
template <D (*slope)(D)>
constexpr Loop grad64 = math::loop64x2<times_slope<slope>>;

// One row for both kinds of gelu: the attribute selects.
template <const Elementwise& exact, const Elementwise& approximate>
dvt_status run_gelu(dvt_device*, const dvt_call* c) {
  const dvt::Attrs a(c);
  if (a.is(0, "tanh")) return run_elementwise(approximate, c);
  if (!a.given(0) || a.is(0, "none")) return run_elementwise(exact, c);
  return DVT_FAIL(DVT_INVALID, "[gelu_grad] approximate is unknown: expected \"none\" or \"tanh\", got \"%.*s\"",
                  int(c->attr[0].count), c->attr[0].v.s);
}
template <const Elementwise& exact, const Elementwise& approximate>
void add_gelu(Table& t, DLDataType type) {
  add_elementwise_row(t, "dvt.gelu_grad", run_gelu<exact, approximate>, 2, type, type);
  t.add_loop({"dvt.gelu_grad", &exact, nullptr, {type, type}, type, "none"});
  t.add_loop({"dvt.gelu_grad", &approximate, nullptr, {type, type}, type, "tanh"});
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  using namespace math;
  add_binary<SiluGrad, V, grad64<doubles::silu_slope>>(t, "dvt.silu_grad");
  constexpr Loop exact = grad64<doubles::gelu_slope>, approximate = grad64<doubles::gelu_tanh_slope>;
  add_gelu<spec32x2<GeluGrad, V>, spec32x2<GeluTanhGrad, D>>(t, dvt::f32);
  add_gelu<spec64x2<exact>, spec64x2<approximate>>(t, dvt::f64);
  add_gelu<spec16x2<GeluGrad, V, Half::f16>, spec16x2<GeluTanhGrad, D, Half::f16>>(t, dvt::f16);
  add_gelu<spec16x2<GeluGrad, V, Half::bf16>, spec16x2<GeluTanhGrad, D, Half::bf16>>(t, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
