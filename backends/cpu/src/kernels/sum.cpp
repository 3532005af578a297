// sum, mean, prod. fp16 and bf16 accumulate in float; integers wrap, so signed and unsigned types share their
// loops.
#include "simd/reduction_rows.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace reduction;
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, f16> || std::is_same_v<T, bf16>, float, T>;

template <class T, template <class> class Op, int parts = 1>
dvt_status run(dvt_device*, const dvt_call* c) {
  const Plan p = plan(c->in[0], axis_mask(c, 0), parts);
  return reduce<T, Op<Accumulator<T>>>(p, dvt::data<const T>(c->in[0]), dvt::data<T>(c->out[0]));
}
template <class T>
dvt_status mean(dvt_device*, const dvt_call* c) {
  const Plan p = plan(c->in[0], axis_mask(c, 0));
  T* const out = dvt::data<T>(c->out[0]);
  if (p.terms) return reduce<T, Sum<Accumulator<T>>>(p, dvt::data<const T>(c->in[0]), out, p.terms);
  for (int64_t i = 0; i < p.results; ++i) out[i] = stored<T>(Accumulator<T>(__builtin_nanf("")));
  return DVT_OK;
}

void add_row(Table& table, const char* op, dvt::Row::Run run, DLDataType type) {
  table.add(dvt::Row(op, run).in(type, DVT_O_STRIDED).out(type).deterministic().kernel());
}
template <class T>
void add_float(Table& table, DLDataType type) {
  using In = Accumulator<T>;
  add_row_reduction<In, Sum<In>>(table, "dvt.sum", type, type);
  add_row_reduction<In, Product<In>>(table, "dvt.prod", type, type);
  add_row_reduction<In, Sum<In>, Finish::mean>(table, "dvt.mean", type, type);
  add_row(table, "dvt.sum", run<T, Sum>, type);
  add_row(table, "dvt.prod", run<T, Product>, type);
  add_row(table, "dvt.mean", mean<T>, type);
}
template <class T>
void add_integer(Table& table) {
  for (uint8_t code : {DVT_INT, DVT_UINT}) {
    const DLDataType type{code, 8 * sizeof(T), 1};
    add_row(table, "dvt.sum", run<T, Sum>, type);
    add_row(table, "dvt.prod", run<T, Product>, type);
    add_row_reduction<T, Sum<T>>(table, "dvt.sum", type, type);
    add_row_reduction<T, Product<T>>(table, "dvt.prod", type, type);
  }
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add_float<float>(table, dvt::f32);
  add_float<double>(table, dvt::f64);
  add_float<f16>(table, dvt::f16);
  add_float<bf16>(table, dvt::bf16);
  add_integer<uint8_t>(table);
  add_integer<uint16_t>(table);
  add_integer<uint32_t>(table);
  add_integer<uint64_t>(table);
  add_row(table, "dvt.sum", run<float, Sum, 2>, dvt::c64);
  add_row(table, "dvt.sum", run<double, Sum, 2>, dvt::c128);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
