// floor ceil trunc round: floats keep the sign of zero, integers are unchanged. round goes to the nearest,
// ties to even.
#include "dovetail/functors.hpp"
#include "simd/elementwise.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace dvt::functors;

template <class T>
void add_integers(Table& t, const char* op) {
  for (unsigned code : {DVT_INT, DVT_UINT}) {
    const DLDataType type{uint8_t(code), 8 * sizeof(T), 1};
    add_elementwise(t, op, kernel<unary<Identity, T, T>>, type, type);
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
