// gelu_grad silu_grad: a derivative times the gradient of the result, in float. float64 uses the C library, but for
// gelu_grad without approximation.
#include <cmath>

#include "simd/double_gradients.hpp"
#include "simd/math_loops.hpp"
#include "simd/wide_math.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using math::V;
struct SiluGrad {
  DOVETAIL_CPU_INLINE V operator()(V x, V grad) const { return math::silu_slope(x) * grad; }
};
struct GeluGrad {
  DOVETAIL_CPU_INLINE V operator()(V x, V grad) const { return math::gelu_slope(x) * grad; }
};
struct GeluTanhGrad {
  // What vanishes in float is 0: infinity times it is NaN.
  DOVETAIL_CPU_INLINE wide::D operator()(wide::D x, wide::D grad) const {
    const wide::D slope = wide::gelu_tanh_slope(x);
    return wide::select(wide::abs(slope) < 0x1p-150, 0, slope) * grad;
  }
};

double clamped(double x, double limit) { return x > limit ? limit : x < -limit ? -limit : x; }
// sigmoid(z) (1 + y sigmoid(-z)), by h = e^(-|z|/2): h does not underflow before the result does.
double gate_slope(double y, double z) {
  const double h = ::exp(-0.5 * __builtin_fabs(z)), positive = 1 / (1 + h * h);
  return z < 0 ? (1 + y * positive) * h * (h * positive) : positive * (1 + y * h * (h * positive));
}
double silu_grad(double x, double grad) {
  x = clamped(x, 1600);
  return gate_slope(x, x) * grad;
}
// Steps are 0 or 1.
void gelu_grad_loop(const void* const* in, const int64_t* step, void* out, int64_t n) {
  using wide::D;
  constexpr int64_t w = D::size();
  const double *x = static_cast<const double*>(in[0]), *grad = static_cast<const double*>(in[1]);
  double* const y = static_cast<double*>(out);
  const auto load = [&](const double* from, int64_t each, int64_t i) __attribute__((always_inline)) {
    if (each == 0) return D(*from);
    if (i + w <= n) return D(from + i, std::experimental::element_aligned);
    alignas(64) double part[w] = {};
    std::memcpy(part, from + i, size_t(n - i) * sizeof(double));
    return D(part, std::experimental::element_aligned);
  };
  for (int64_t i = 0; i < n; i += w) {
    alignas(64) double part[w];
    (doubles::gelu_slope(load(x, step[0], i)) * load(grad, step[1], i))
        .copy_to(part, std::experimental::element_aligned);
    std::memcpy(y + i, part, size_t(least(w, n - i)) * sizeof(double));
  }
}
double gelu_tanh_grad(double x, double grad) {
  constexpr double c = 1.5957691216057308;
  x = clamped(x, 25);
  return gate_slope(x * (c + 3 * 0.044715 * c * x * x), x * (c + 0.044715 * c * x * x)) * grad;
}

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
  add_binary<SiluGrad, V, scalar_loop2<silu_grad>>(t, "dvt.silu_grad");
  constexpr Loop exact = gelu_grad_loop, approximate = scalar_loop2<gelu_tanh_grad>;
  using wide::D;
  add_gelu<spec32x2<GeluGrad, V>, spec32x2<GeluTanhGrad, D>>(t, dvt::f32);
  add_gelu<spec64x2<exact>, spec64x2<approximate>>(t, dvt::f64);
  add_gelu<spec16x2<GeluGrad, V, Half::f16>, spec16x2<GeluTanhGrad, D, Half::f16>>(t, dvt::f16);
  add_gelu<spec16x2<GeluGrad, V, Half::bf16>, spec16x2<GeluTanhGrad, D, Half::bf16>>(t, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
