// The host side of elementwise kernels (kernels/common/elementwise.cuh): rows, and the launch of either variant.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "dtypes.hpp"
#include "launch.hpp"

namespace gpu {
struct ElementwiseKernels {
  KernelId dense, strided;
};
// Throws std::logic_error where one is missing.
inline ElementwiseKernels find_elementwise(const std::string& name) {
  return {find_kernel(name), find_kernel(name + "_strided")};
}

// One to three inputs, one output.
dvt_status run_elementwise(dvt_device*, const dvt_call*, const ElementwiseKernels&);

// The name of an op as a template argument: each op gets a function and kernels of its own.
template <size_t n>
struct OpName {
  char text[n];
  constexpr OpName(const char (&from)[n]) { std::copy_n(from, n, text); }
  constexpr std::string_view stem() const { return std::string_view(text).substr(4); }  // behind "dvt."
};

using KernelsByType = std::array<ElementwiseKernels, type_count>;
// The kernels of an op that differ by the type of input 0: add_f32, add_i8, ...; found when its rows are added.
template <OpName op>
inline constinit KernelsByType kernels_by_type{};

template <OpName op>
dvt_status run_by_type(dvt_device* d, const dvt_call* c) {
  return run_elementwise(d, c, kernels_by_type<op>[type_index(c->in[0]->dtype)]);
}

inline constexpr unsigned any_operand = DVT_O_STRIDED | DVT_O_HOST_SCALAR;

// Rows of an op whose inputs are all of one type, for each of `types`; of the same type or of `result`'s is its
// output. They use the kernels of kernel_type(type).
template <OpName op>
void add_elementwise(dvt::KernelTable& table, int inputs, const Types& types, const DLDataType* result = nullptr,
                     DLDataType (*kernel_type)(DLDataType) = without_bool) {
  for (const DLDataType type : types) {
    const std::string name = std::string(op.stem()) + "_" + type_name(kernel_type(type));
    kernels_by_type<op>[type_index(type)] = find_elementwise(name);
    const DLDataType out = result ? *result : type;
    dvt::Row row(op.text, run_by_type<op>);
    for (int i = 0; i < inputs; ++i) row.in(type, any_operand | (dvt::same(out, type) ? DVT_O_ALIAS : 0));
    row.out(out).deterministic();
    table.add(row);
  }
}
}  // namespace gpu
