// iota: 0, 1, 2, ...
#include "simd/half.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
// Integers wrap; fp16 and bf16 are rounded once.
template <class T>
DOVETAIL_CPU_INLINE T number(uint64_t i) {
  return T(i);
}
template <>
DOVETAIL_CPU_INLINE f16 number<f16>(uint64_t i) {
  return narrow<f16>(to_odd(double(i)));
}
template <>
DOVETAIL_CPU_INLINE bf16 number<bf16>(uint64_t i) {
  return narrow<bf16>(to_odd(double(i)));
}

template <class T>
dvt_status iota(dvt_device*, const dvt_call* c) {
  T* out = dvt::data<T>(c->out[0]);
  dvt::parallel_for(uint64_t(dvt::size(c->out[0])), 32768, [=](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t i = begin; i < end; ++i) out[i] = number<T>(i);
  });
  return DVT_OK;
}

void add(Table& t, DLDataType type, dvt::Row::Run run) {
  t.add(dvt::Row("dvt.iota", run).out(type).deterministic().kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& t) {
  add(t, dvt::i8, iota<uint8_t>);
  add(t, dvt::i16, iota<uint16_t>);
  add(t, dvt::i32, iota<uint32_t>);
  add(t, dvt::i64, iota<uint64_t>);
  add(t, dvt::u8, iota<uint8_t>);
  add(t, dvt::u16, iota<uint16_t>);
  add(t, dvt::u32, iota<uint32_t>);
  add(t, dvt::u64, iota<uint64_t>);
  add(t, dvt::f16, iota<f16>);
  add(t, dvt::bf16, iota<bf16>);
  add(t, dvt::f32, iota<float>);
  add(t, dvt::f64, iota<double>);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
