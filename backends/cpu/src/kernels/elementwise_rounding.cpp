// floor ceil trunc round: floats keep the sign of zero, integers are unchanged. round goes to the nearest,
// ties to even.
#include "simd/elementwise.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
struct Floor {
  float operator()(float x) const { return __builtin_floorf(x); }
  double operator()(double x) const { return __builtin_floor(x); }
};
struct Ceil {
  float operator()(float x) const { return __builtin_ceilf(x); }
  double operator()(double x) const { return __builtin_ceil(x); }
};
struct Trunc {
  float operator()(float x) const { return __builtin_truncf(x); }
  double operator()(double x) const { return __builtin_trunc(x); }
};
struct Round {
  float operator()(float x) const { return __builtin_nearbyintf(x); }
  double operator()(double x) const { return __builtin_nearbyint(x); }
};

struct Same {
  template <class T>
  T operator()(T x) const {
    return x;
  }
};

template <class T>
void add_integers(Table& t, const char* op) {
  for (unsigned code : {DVT_INT, DVT_UINT}) {
    const DLDataType type{uint8_t(code), 8 * sizeof(T), 1};
    add_elementwise(t, op, run<unary<Same, T, T>>, 1, type, type);
  }
}
template <class Op>
void add(Table& t, const char* op) {
  add_unary<Op, float, double>(t, op);
  add_unary_half<Op>(t, op);
  add_integers<uint8_t>(t, op);
  add_integers<uint16_t>(t, op);
  add_integers<uint32_t>(t, op);
  add_integers<uint64_t>(t, op);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  add<Floor>(t, "dvt.floor");
  add<Ceil>(t, "dvt.ceil");
  add<Trunc>(t, "dvt.trunc");
  add<Round>(t, "dvt.round");
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
