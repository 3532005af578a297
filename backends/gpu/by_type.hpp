// Ops whose kernels differ by the data type of input 0.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "gpu/dtypes.hpp"
#include "launch.hpp"

namespace gpu {
// The name of an op as a template argument: each op gets a function and kernels of its own.
template <size_t n>
struct OpName {
  char text[n];
  constexpr OpName(const char (&from)[n]) { std::copy_n(from, n, text); }
  constexpr std::string_view stem() const { return std::string_view(text).substr(4); }  // without "dvt."
};

// Filled when the rows of the op are added.
template <OpName op, class Kernels>
inline constinit std::array<Kernels, type_count> kernels_by_type{};

template <OpName op, class Kernels>
Kernels& kernels_for(DLDataType type) {
  return kernels_by_type<op, Kernels>[type_index(type)];
}

// The functions of a row: `run` and `query` with the kernels for the type of input 0.
template <OpName op, class Kernels, dvt_status (*run)(dvt_device*, const dvt_call*, const Kernels&)>
dvt_status run_by_type(dvt_device* d, const dvt_call* c) {
  return run(d, c, kernels_for<op, Kernels>(c->in[0]->dtype));
}
template <OpName op, class Kernels, dvt_status (*query)(dvt_device*, const dvt_call*, dvt_answer*, const Kernels&)>
dvt_status query_by_type(dvt_device* d, const dvt_call* c, dvt_answer* answer) {
  return query(d, c, answer, kernels_for<op, Kernels>(c->in[0]->dtype));
}

// The kernel <name>_<type>.
inline KernelId find_kernel(std::string_view name, DLDataType type) {
  return find_kernel(std::string(name) + "_" + type_name(type));
}

// Rows of an op for each of `types`, with the kernels that find(name of the op, type) returns. operands(row, type)
// lists inputs and outputs.
template <OpName op, class Kernels, dvt_status (*run)(dvt_device*, const dvt_call*, const Kernels&), class Operands>
void add_by_type(dvt::KernelTable& table, const Types& types, Kernels (*find)(std::string_view, DLDataType),
                 const Operands& operands) {
  for (const DLDataType type : types) {
    kernels_for<op, Kernels>(type) = find(op.stem(), type);
    dvt::Row row(op.text, run_by_type<op, Kernels, run>);
    operands(row, type);
    row.deterministic();
    require_type(row, type);
    table.add(row);
  }
}
}  // namespace gpu
