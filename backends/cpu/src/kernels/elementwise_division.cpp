// quotient, floor_divide, remainder; pow of integers.
#include <cmath>

#include "dovetail/functors.hpp"
#include "simd/elementwise.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace dvt::functors;

// fmod is exact in double if quotient and divisor together have at most 53 bits.
inline float truncated_remainder(float a, float b) {
  const double x = a, y = b, q = x / y;
  if (!(std::fabs(q) < 0x1p28)) return std::fmod(a, b);
  const double n = std::trunc(q);
  return n == 0 ? a : float(x - n * y);  // and an infinite divisor returns a
}
struct FloatRemainder : Remainder {  // in half the time
  using Remainder::operator();
  float operator()(float a, float b) const {
    const float r = truncated_remainder(a, b);
    if (r == 0) return __builtin_copysignf(0, b);
    return (r < 0) != (b < 0) ? r + b : r;
  }
};

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
  add_floats<FloatRemainder>(t, "dvt.remainder");
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
