// score_indices: 0, 1, 2, ... for each axis of the scores. The operands' elements are not read.
#include "dovetail/backend.hpp"
#include "kernel.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
dvt_status run(dvt_device*, const dvt_call* c) {
  for (uint32_t axis = 0; axis < c->n_out; ++axis) {
    const DLTensor& out = *c->out[axis];
    for (int64_t i = 0; i < out.shape[0]; ++i) dvt::data<int32_t>(&out)[i] = int32_t(i);
  }
  return DVT_OK;
}

void add(Table& table, DLDataType type) {
  dvt::Row row("dvt.score_indices", run);
  row.in(type, DVT_O_STRIDED).in(type, DVT_O_STRIDED);
  for (int i = 0; i < 4; ++i) row.out(dvt::i32);
  table.add(row.kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) { add(table, dvt::f32), add(table, dvt::f64); }
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
