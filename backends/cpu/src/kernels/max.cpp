// max, min: NaN wins.
#include "simd/reduction_rows.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace reduction {
DOVETAIL_CPU_EXTREMA(template)
}  // namespace reduction
namespace {
using namespace reduction;
template <class T>
using Compared = std::conditional_t<std::is_same_v<T, f16> || std::is_same_v<T, bf16>, float, T>;

template <class T, template <class> class Op>
dvt_status run(dvt_device*, const dvt_call* c) {
  const Plan p = plan(c->in[0], axis_mask(c, 0));
  return reduce<T, Op<Compared<T>>>(p, dvt::data<const T>(c->in[0]), dvt::data<T>(c->out[0]));
}
template <class T>
void add(Table& table, DLDataType type) {
  using In = Compared<T>;
  add_row_reduction<In, Max<In>>(table, "dvt.max", type, type);
  add_row_reduction<In, Min<In>>(table, "dvt.min", type, type);
  table.add(dvt::Row("dvt.max", run<T, Max>).in(type, DVT_O_STRIDED).out(type).deterministic().kernel());
  table.add(dvt::Row("dvt.min", run<T, Min>).in(type, DVT_O_STRIDED).out(type).deterministic().kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
  add<int8_t>(table, dvt::i8);
  add<int16_t>(table, dvt::i16);
  add<int32_t>(table, dvt::i32);
  add<int64_t>(table, dvt::i64);
  add<uint8_t>(table, dvt::u8);
  add<uint16_t>(table, dvt::u16);
  add<uint32_t>(table, dvt::u32);
  add<uint64_t>(table, dvt::u64);
  add<uint8_t>(table, dvt::boolean);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
