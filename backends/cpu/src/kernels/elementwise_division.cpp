// quotient, floor_divide, remainder; pow of integers.
#include <cmath>

#include "dovetail/functors.hpp"
#include "simd/double_math.hpp"
#include "simd/math_loops.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace dvt::functors;

using wide::D;
// x - n y for the whole n that gives it the sign of y: exact while n and y together have no more bits than a
// double, or with a fused multiply-add while n has no more. `limit`: of n; beyond it fmod computes.
template <class T>
struct VectorRemainder {
  static constexpr double limit = sizeof(T) == 4 ? 0x1p28 : 0x1p52;

  DOVETAIL_CPU_INLINE D operator()(D x, D y) const {
    const D quotient = x / y, n = wide::stdx::trunc(quotient);
    D r = wide::select(n == 0, x, doubles::less_product(x, n, y));  // of an infinite y, x
    if (!wide::stdx::all_of(wide::abs(quotient) < limit)) [[unlikely]]
      for (size_t i = 0; i < D::size(); ++i)
        if (!(std::fabs(quotient[i]) < limit)) r[i] = std::fmod(x[i], y[i]);
    return wide::select(r == 0, wide::copysign(0, y), wide::select((r < 0) != (y < 0), r + y, r));
  }
};
#if defined(DOVETAIL_CPU_FMA)
constexpr Loop remainder64 = math::vector_loop2<VectorRemainder<double>, D, double>;
#else
double remainder(double x, double y) { return Remainder()(x, y); }
constexpr Loop remainder64 = math::scalar_loop2<remainder>;
#endif

template <class Op>
void add_integers(Table& t, const char* op) {
  add_binary<Op, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(t, op);
}
template <class Op>
void add_floats(Table& t, const char* op) {
  add_binary<Op, float, double>(t, op);
  add_binary_half<Op>(t, op);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  add_integers<Quotient>(t, "dvt.quotient");
  add_integers<FloorDivide>(t, "dvt.floor_divide");
  add_integers<Remainder>(t, "dvt.remainder");
  add_integers<Pow>(t, "dvt.pow");
  add_floats<FloorDivide>(t, "dvt.floor_divide");
  math::add_binary<VectorRemainder<float>, D, remainder64>(t, "dvt.remainder");
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
