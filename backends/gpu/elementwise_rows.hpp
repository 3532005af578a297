// The rows of the elementwise ops, by the families of their kernels.
#pragma once
#include "gpu/elementwise.hpp"

namespace gpu {
// ---- elementwise_activation -----------------------------------------------------------

inline dvt_status run_gelu(dvt_device* d, const dvt_call* c) {
  const DLDataType type = c->in[0]->dtype;
  return run_elementwise(d, c,
                         dvt::Attrs(c).is(0, "tanh") ? elementwise_kernels<"dvt.gelu_tanh">(type)
                                                     : elementwise_kernels<"dvt.gelu">(type));
}

// The decomposition reports an unknown value of the attribute.
inline dvt_status query_gelu(dvt_device* d, const dvt_call* c, dvt_answer* answer) {
  const dvt::Attrs attrs(c);
  if (!attrs.given(0) || attrs.is(0, "none") || attrs.is(0, "tanh")) return query_type(d, c->in[0]->dtype, answer);
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  DVT_PUT(answer, dvt_answer, reason, "approximate is neither none nor tanh");
  return DVT_UNSUPPORTED;
}

// Attribute 0, the parameter of the function, is the kernel's second input, in the type that the kernel computes
// in.
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
  return run_elementwise(d, &with, elementwise_kernels<op>(type));
}
template <OpName op, double fallback>
void add_with_parameter(dvt::KernelTable& table) {
  for (const DLDataType type : floats) {
    elementwise_kernels<op>(type) = find_elementwise(op.stem(), type);
    dvt::Row row(op.text, run_with_parameter<op, fallback>);
    row.in(type, any_operand | DVT_O_ALIAS).out(type).deterministic();
    require_type(row, type);
    table.add(row);
  }
}

inline void add_activation(dvt::KernelTable& table) {
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
  for (const DLDataType type : floats) {
    elementwise_kernels<"dvt.gelu">(type) = find_elementwise("gelu", type);
    elementwise_kernels<"dvt.gelu_tanh">(type) = find_elementwise("gelu_tanh", type);
    dvt::Row row("dvt.gelu", run_gelu);
    table.add(row.in(type, any_operand | DVT_O_ALIAS).out(type).deterministic().query(query_gelu));
  }
}

// ---- elementwise_arithmetic -------------------------------------------------------------

inline dvt_status run_clip(dvt_device* d, const dvt_call* c) {
  const DLDataType type = c->in[0]->dtype;
  const DLTensor* in[] = {c->in[0], c->in[dvt::has_in(c, 1) ? 1 : 0], nullptr};  // without a lower bound x itself
  dvt_call all = *c;
  all.in = in, all.n_in = 2;
  if (!dvt::has_in(c, 2)) return run_elementwise(d, &all, elementwise_kernels<"dvt.maximum">(type));
  in[2] = c->in[2], all.n_in = 3;
  return run_elementwise(d, &all, elementwise_kernels<"dvt.clip">(type));
}

inline void add_arithmetic(dvt::KernelTable& table) {
  add_elementwise<"dvt.add">(table, 2, integers + floats, nullptr, without_sign);
  add_elementwise<"dvt.subtract">(table, 2, integers + floats, nullptr, without_sign);
  add_elementwise<"dvt.multiply">(table, 2, integers + floats, nullptr, without_sign);
  add_elementwise<"dvt.divide">(table, 2, floats);
  add_elementwise<"dvt.maximum">(table, 2, boolean + integers + floats);
  add_elementwise<"dvt.minimum">(table, 2, boolean + integers + floats);
  for (const DLDataType type : integers + floats) {
    elementwise_kernels<"dvt.clip">(type) = find_elementwise("clip", type);
    constexpr unsigned bound = any_operand | DVT_O_ALIAS | DVT_O_OPTIONAL;
    dvt::Row row("dvt.clip", run_clip);
    row.in(type, any_operand | DVT_O_ALIAS).in(type, bound).in(type, bound).out(type).deterministic();
    require_type(row, type);
    table.add(row);
  }
}

// ---- elementwise_compare ----------------------------------------------------------------

// a >= b as b <= a.
inline dvt_status run_greater_equal(dvt_device* d, const dvt_call* c) {
  const DLTensor* in[] = {c->in[1], c->in[0]};
  dvt_call exchanged = *c;
  exchanged.in = in;
  return run_elementwise_op<"dvt.less_equal">(d, &exchanged);
}

inline void add_compare(dvt::KernelTable& table) {
  const Types all = boolean + integers + floats;
  add_elementwise<"dvt.equal">(table, 2, all, &dvt::boolean, without_sign);
  add_elementwise<"dvt.not_equal">(table, 2, all, &dvt::boolean, without_sign);
  add_elementwise<"dvt.less">(table, 2, all, &dvt::boolean);
  add_elementwise<"dvt.less_equal">(table, 2, all, &dvt::boolean);
  for (const DLDataType type : all) {
    const unsigned flags = any_operand | (dvt::same(type, dvt::boolean) ? DVT_O_ALIAS : 0);
    dvt::Row row("dvt.greater_equal", run_greater_equal);
    row.in(type, flags).in(type, flags).out(dvt::boolean).deterministic();
    require_type(row, type);
    table.add(row);
  }
  add_elementwise<"dvt.isinf">(table, 1, floats, &dvt::boolean);
  add_elementwise<"dvt.isfinite">(table, 1, floats, &dvt::boolean);
}

// ---- the other families -----------------------------------------------------------------

inline void add_bitwise(dvt::KernelTable& table) {
  add_elementwise<"dvt.bitwise_and">(table, 2, boolean + integers, nullptr, without_sign);
  add_elementwise<"dvt.bitwise_or">(table, 2, boolean + integers, nullptr, without_sign);
  add_elementwise<"dvt.bitwise_xor">(table, 2, boolean + integers, nullptr, without_sign);
  add_elementwise<"dvt.bitwise_left_shift">(table, 2, integers, nullptr, without_sign);
  add_elementwise<"dvt.bitwise_right_shift">(table, 2, integers);
}

inline void add_division(dvt::KernelTable& table) {
  add_elementwise<"dvt.quotient">(table, 2, integers);
  add_elementwise<"dvt.floor_divide">(table, 2, integers + floats);
  add_elementwise<"dvt.remainder">(table, 2, integers + floats);
}

inline void add_exponential(dvt::KernelTable& table) {
  add_elementwise<"dvt.exp">(table, 1, floats);
  add_elementwise<"dvt.expm1">(table, 1, floats);
  add_elementwise<"dvt.log">(table, 1, floats);
  add_elementwise<"dvt.log1p">(table, 1, floats);
  add_elementwise<"dvt.tanh">(table, 1, floats);
  add_elementwise<"dvt.erf">(table, 1, floats);
  add_elementwise<"dvt.erfc">(table, 1, floats);
  add_elementwise<"dvt.sqrt">(table, 1, floats);
  add_elementwise<"dvt.rsqrt">(table, 1, floats);
}

inline void add_hyperbolic(dvt::KernelTable& table) {
  add_elementwise<"dvt.sinh">(table, 1, floats);
  add_elementwise<"dvt.cosh">(table, 1, floats);
  add_elementwise<"dvt.asinh">(table, 1, floats);
  add_elementwise<"dvt.acosh">(table, 1, floats);
  add_elementwise<"dvt.atanh">(table, 1, floats);
}

inline void add_logical(dvt::KernelTable& table) {
  add_elementwise<"dvt.logical_and">(table, 2, integers + floats, &dvt::boolean, without_sign);
  add_elementwise<"dvt.logical_or">(table, 2, integers + floats, &dvt::boolean, without_sign);
  add_elementwise<"dvt.logical_xor">(table, 2, integers + floats, &dvt::boolean, without_sign);
  add_elementwise<"dvt.logical_not">(table, 1, integers + floats, &dvt::boolean, without_sign);
}

inline void add_power(dvt::KernelTable& table) {
  add_elementwise<"dvt.pow">(table, 2, integers + floats);
  add_elementwise<"dvt.exp2">(table, 1, floats);
  add_elementwise<"dvt.log2">(table, 1, floats);
  add_elementwise<"dvt.log10">(table, 1, floats);
  add_elementwise<"dvt.hypot">(table, 2, floats);
  add_elementwise<"dvt.logaddexp">(table, 2, floats);
}

inline void add_rounding(dvt::KernelTable& table) {
  add_elementwise<"dvt.floor">(table, 1, integers + floats);
  add_elementwise<"dvt.ceil">(table, 1, floats);
  add_elementwise<"dvt.trunc">(table, 1, floats);
  add_elementwise<"dvt.round">(table, 1, floats);
  // fp16 and bf16 are computed in float32, whose next number is another one.
  add_elementwise<"dvt.nextafter">(table, 2, {dvt::f32, dvt::f64});
}

inline void add_sign(dvt::KernelTable& table) {
  add_elementwise<"dvt.sign">(table, 1, integers + floats);
  add_elementwise<"dvt.abs">(table, 1, {dvt::i8, dvt::i16, dvt::i32, dvt::i64});  // of floats one operation on bits
  add_elementwise<"dvt.copysign">(table, 2, floats);
}

inline void add_trigonometry(dvt::KernelTable& table) {
  add_elementwise<"dvt.sin">(table, 1, floats);
  add_elementwise<"dvt.cos">(table, 1, floats);
  add_elementwise<"dvt.tan">(table, 1, floats);
  add_elementwise<"dvt.asin">(table, 1, floats);
  add_elementwise<"dvt.acos">(table, 1, floats);
  add_elementwise<"dvt.atan">(table, 1, floats);
  add_elementwise<"dvt.atan2">(table, 2, floats);
}

inline dvt_status run_where(dvt_device* d, const dvt_call* c) {
  return run_elementwise(d, c, kernels_by_type<"dvt.where", ElementwiseKernels>[size_index(c->out[0]->dtype)]);
}
inline void add_where(dvt::KernelTable& table) {
  for (const DLDataType type : sizes) {
    elementwise_kernels<"dvt.where">(type) = find_elementwise("where", type);
    dvt::Row row("dvt.where", run_where);
    row.in(dvt::boolean, any_operand).in(type, any_operand | DVT_O_ALIAS).in(type, any_operand | DVT_O_ALIAS);
    table.add(row.out(type).deterministic());
  }
}

// ---- astype -----------------------------------------------------------------------------

inline constinit std::array<std::array<ElementwiseKernels, type_count>, type_count> astype_kernels{};  // [from][to]

inline dvt_status run_astype(dvt_device* d, const dvt_call* c) {
  return run_elementwise(d, c, astype_kernels[type_index(c->in[0]->dtype)][type_index(c->out[0]->dtype)]);
}
// The kernel that makes the same bits.
inline ElementwiseKernels find_astype(DLDataType from, DLDataType to) {
  const bool loses_bits = to.code == DVT_BOOL || (!is_float(to) && to.bits <= from.bits);
  const DLDataType read = loses_bits ? without_sign(from) : without_bool(from);
  return find_elementwise(std::string("astype_") + type_name(read), to.code == DVT_INT ? unsigned_of(to) : to);
}
inline void add_astype(dvt::KernelTable& table) {
  const auto add = [&](DLDataType from, DLDataType to) {
    astype_kernels[type_index(from)][type_index(to)] = find_astype(from, to);
    dvt::Row row("dvt.astype", run_astype);
    row.in(from, any_operand).out(to).deterministic();
    require_type(row, from), require_type(row, to);
    table.add(row);
  };
  const Types all = boolean + integers + floats;
  for (const DLDataType from : all)
    for (const DLDataType to : all) add(from, to);
  for (const DLDataType float8 : floats8)
    for (const DLDataType other : floats) {
      add(other, float8);
      if (!dvt::same(other, dvt::f64)) add(float8, other);
    }
}
}  // namespace gpu
