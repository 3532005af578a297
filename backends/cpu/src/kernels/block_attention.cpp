// block_attention without scores, and with scores that a group of the compiler changes.
#include "simd/block_attention.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
template <class T>
dvt_status run(dvt_device*, const dvt_call* c) {
  const auto optional = [&](uint32_t i) { return dvt::has_in(c, i) ? c->in[i] : nullptr; };
  return attention::block_attention<T>(
      {c->in[0], c->in[1], c->in[2], optional(3), optional(4), c->out[0], c->out[1], dvt::Attrs(c).f64(0)});
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  if (dvt::has_in(c, 5)) {
    DVT_PUT(answer, dvt_answer, reason, "scores that exist are no work for it");
    return DVT_UNSUPPORTED;
  }
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  return DVT_OK;
}

template <class T>
void add(Table& table, DLDataType type) {
  table.add(dvt::Row("dvt.block_attention", run<T>)
                .in(type, DVT_O_STRIDED)
                .in(type, DVT_O_STRIDED)
                .in(type, DVT_O_STRIDED)
                .in(dvt::i32, DVT_O_OPTIONAL)
                .in(dvt::boolean, DVT_O_OPTIONAL)
                .in(dvt::any(0), DVT_O_STRIDED | DVT_O_OPTIONAL)
                .out(type)
                .out(sizeof(rows::Computed<T>) == 8 ? dvt::f64 : dvt::f32)
                .query(query)
                .kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
