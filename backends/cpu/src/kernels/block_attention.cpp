// block_attention: of scores that exist, and of products, which a group of the compiler may change.
#include "simd/block_attention.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
template <class T>
dvt_status run(dvt_device*, const dvt_call* c) {
  const auto optional = [&](uint32_t i) { return dvt::has_in(c, i) ? c->in[i] : nullptr; };
  return attention::block_attention<T>({c->in[0], c->in[1], c->in[2], optional(3), optional(4), optional(5),
                                        c->out[0], c->out[1], dvt::Attrs(c).f64(0)});
}

template <class T>
void add(Table& table, DLDataType type) {
  const DLDataType of_scores = sizeof(rows::Computed<T>) == 8 ? dvt::f64 : dvt::f32;
  dvt::Row row("dvt.block_attention", run<T>);
  row.in(type, DVT_O_STRIDED)
      .in(type, DVT_O_STRIDED)
      .in(type, DVT_O_STRIDED)
      .in(dvt::i32, DVT_O_OPTIONAL)
      .in(dvt::boolean, DVT_O_OPTIONAL)
      .in(of_scores, DVT_O_STRIDED | DVT_O_OPTIONAL)
      .out(type)
      .out(of_scores);
  if (attention::may_run_in_tiles<T>()) row.flags(DVT_K_FLUSHES_SUBNORMALS);
  table.add(row.kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  table.set_block_attention(attention::block_attention<float>, attention::block_attention<double>);
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
