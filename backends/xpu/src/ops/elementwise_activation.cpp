#include "elementwise.hpp"

namespace xpu {
namespace {
constinit KernelsByType gelu{}, gelu_tanh{};

dvt_status run_gelu(dvt_device* d, const dvt_call* c) {
  return run_elementwise(d, c, (dvt::Attrs(c).is(0, "tanh") ? gelu_tanh : gelu)[type_index(c->in[0]->dtype)]);
}

// Of a form that is unknown the body says what is wrong with it.
dvt_status query_gelu(dvt_device* d, const dvt_call* c, dvt_answer* answer) {
  const dvt::Attrs attrs(c);
  const bool known = !attrs.given(0) || attrs.is(0, "none") || attrs.is(0, "tanh");
  if (known && dvt::same(c->in[0]->dtype, dvt::f64)) return query_fp64(d, c, answer);
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  if (known) return DVT_OK;
  DVT_PUT(answer, dvt_answer, reason, "approximate is neither none nor tanh");
  return DVT_UNSUPPORTED;
}

void add_gelu(dvt::KernelTable& table, DLDataType type) {
  gelu[type_index(type)] = find_elementwise(std::string("gelu_") + type_name(type));
  gelu_tanh[type_index(type)] = find_elementwise(std::string("gelu_tanh_") + type_name(type));
  dvt::Row row("dvt.gelu", run_gelu);
  table.add(row.in(type, any_operand | DVT_O_ALIAS).out(type).deterministic().query(query_gelu));
}
}  // namespace

void XPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.relu">(table, 1, floats);
  add_elementwise<"dvt.sigmoid">(table, 1, floats);
  add_elementwise<"dvt.silu">(table, 1, floats);
  for (const DLDataType type : floats) add_gelu(table, type);
}
}  // namespace xpu
