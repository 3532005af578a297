// Elementwise kernels: rows, and the launch of either variant. A backend defines run_elementwise.
#pragma once
#include "gpu/by_type.hpp"

namespace gpu {
struct ElementwiseKernels {
  KernelId dense, strided;
};
// Throws std::logic_error if one of the kernels <name>_<type> and <name>_<type>_strided is missing.
inline ElementwiseKernels find_elementwise(std::string_view name, DLDataType type) {
  const std::string dense = std::string(name) + "_" + type_name(type);
  return {find_kernel(dense), find_kernel(dense + "_strided")};
}

// One to three inputs, one output.
dvt_status run_elementwise(dvt_device*, const dvt_call*, const ElementwiseKernels&);

// run.template operator()<inputs>() for the number of inputs of the call.
template <class Run>
dvt_status with_inputs(const dvt_call* c, const Run& run) {
  switch (c->n_in) {
    case 1: return run.template operator()<1>();
    case 2: return run.template operator()<2>();
    default: return run.template operator()<3>();
  }
}

template <OpName op>
ElementwiseKernels& elementwise_kernels(DLDataType type) {
  return kernels_for<op, ElementwiseKernels>(type);
}
template <OpName op>
inline constexpr auto run_elementwise_op = run_by_type<op, ElementwiseKernels, run_elementwise>;

inline constexpr unsigned any_operand = DVT_O_STRIDED | DVT_O_HOST_SCALAR;

// Rows of an op whose inputs have one type, for each of `types`, with the kernels of kernel_type(type). The output
// has that type, too, or *result.
template <OpName op>
void add_elementwise(dvt::KernelTable& table, int inputs, const Types& types, const DLDataType* result = nullptr,
                     DLDataType (*kernel_type)(DLDataType) = without_bool) {
  for (const DLDataType type : types) {
    elementwise_kernels<op>(type) = find_elementwise(op.stem(), kernel_type(type));
    const DLDataType out = result ? *result : type;
    dvt::Row row(op.text, run_elementwise_op<op>);
    for (int i = 0; i < inputs; ++i) row.in(type, any_operand | (dvt::same(out, type) ? DVT_O_ALIAS : 0));
    row.out(out).deterministic();
    require_type(row, type);
    table.add(row);
  }
}
}  // namespace gpu
