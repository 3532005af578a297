#include "elementwise.hpp"

namespace gpu {
namespace {
constinit KernelsByType gelu{}, gelu_tanh{};

dvt_status run_gelu(dvt_device* d, const dvt_call* c) {
  return run_elementwise(d, c, (dvt::Attrs(c).is(0, "tanh") ? gelu_tanh : gelu)[type_index(c->in[0]->dtype)]);
}

// Of a form that is unknown the body says what is wrong with it.
dvt_status query_gelu(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const dvt::Attrs attrs(c);
  const bool known = !attrs.given(0) || attrs.is(0, "none") || attrs.is(0, "tanh");
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

// The parameter of a function, attribute 0, is the kernel's second input, in the type that the kernel computes in.
template <OpName op, double fallback>
dvt_status run_with_parameter(dvt_device* d, const dvt_call* c) {
  const DLDataType type = c->in[0]->dtype;
  double wide = dvt::Attrs(c).f64(0, fallback);
  auto narrow = float(wide);
  const bool is_wide = dvt::same(type, dvt::f64);
  DLTensor parameter{};
  parameter.data = is_wide ? static_cast<void*>(&wide) : &narrow;
  parameter.device = {1, 0};  // kDLCPU
  parameter.dtype = is_wide ? dvt::f64 : dvt::f32;
  const DLTensor* in[] = {c->in[0], &parameter};
  dvt_call with = *c;
  with.in = in, with.n_in = 2;
  return run_elementwise(d, &with, kernels_by_type<op>[type_index(type)]);
}
template <OpName op, double fallback>
void add_with_parameter(dvt::KernelTable& table) {
  for (const DLDataType type : floats) {
    kernels_by_type<op>[type_index(type)] = find_elementwise(std::string(op.stem()) + "_" + type_name(type));
    dvt::Row row(op.text, run_with_parameter<op, fallback>);
    row.in(type, any_operand | DVT_O_ALIAS).out(type).deterministic();
    table.add(row);
  }
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.relu">(table, 1, floats);
  add_elementwise<"dvt.sigmoid">(table, 1, floats);
  add_elementwise<"dvt.silu">(table, 1, floats);
  add_elementwise<"dvt.mish">(table, 1, floats);
  add_elementwise<"dvt.selu">(table, 1, floats);
  add_elementwise<"dvt.logsigmoid">(table, 1, floats);
  add_elementwise<"dvt.hardsigmoid">(table, 1, floats);
  add_elementwise<"dvt.hardswish">(table, 1, floats);
  add_with_parameter<"dvt.leaky_relu", 0.01>(table);
  add_with_parameter<"dvt.elu", 1.0>(table);
  add_with_parameter<"dvt.softplus", 1.0>(table);
  for (const DLDataType type : floats) add_gelu(table, type);
}
}  // namespace gpu
