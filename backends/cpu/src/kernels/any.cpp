// any, all: the maximum and minimum of x != 0. Zeros of both signs are false; NaN is true.
#include "simd/reduction_rows.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace reduction;
struct NotZero {
  template <class T>
  DOVETAIL_CPU_INLINE static uint8_t one(T bits) {
    return bits != 0;
  }
};
struct NotZeroFloat {
  template <class T>
  DOVETAIL_CPU_INLINE static uint8_t one(T bits) {
    return T(bits << 1) != 0;
  }
};

template <class T, template <class> class Op, class L>
dvt_status run(dvt_device*, const dvt_call* c) {
  const Plan p = plan(c->in[0], axis_mask(c, 0));
  return reduce<T, Op<uint8_t>, bool, L>(p, dvt::data<const T>(c->in[0]), dvt::data<bool>(c->out[0]));
}
// In: what the type is in a tile.
template <class T, class L, class In = T>
void add(Table& table, DLDataType type) {
  add_row_reduction<In, Max<uint8_t>, Finish::truth, L>(table, "dvt.any", type, dvt::boolean);
  add_row_reduction<In, Min<uint8_t>, Finish::truth, L>(table, "dvt.all", type, dvt::boolean);
  table.add(dvt::Row("dvt.any", run<T, Max, L>).in(type, DVT_O_STRIDED).out(dvt::boolean).deterministic().kernel());
  table.add(dvt::Row("dvt.all", run<T, Min, L>).in(type, DVT_O_STRIDED).out(dvt::boolean).deterministic().kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<uint8_t, NotZero>(table, dvt::boolean);
  add<uint32_t, NotZeroFloat>(table, dvt::f32);
  add<uint64_t, NotZeroFloat>(table, dvt::f64);
  add<uint16_t, NotZeroFloat, uint32_t>(table, dvt::f16);
  add<uint16_t, NotZeroFloat, uint32_t>(table, dvt::bf16);
  for (DLDataType t : {dvt::i8, dvt::u8}) add<uint8_t, NotZero>(table, t);
  for (DLDataType t : {dvt::i16, dvt::u16}) add<uint16_t, NotZero>(table, t);
  for (DLDataType t : {dvt::i32, dvt::u32}) add<uint32_t, NotZero>(table, t);
  for (DLDataType t : {dvt::i64, dvt::u64}) add<uint64_t, NotZero>(table, t);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
