// The host side of reductions (kernels/common/reduction.cuh).
#pragma once
#include <array>
#include <string>

#include "dtypes.hpp"
#include "elementwise.hpp"
#include "lines.hpp"

namespace gpu {
struct ReductionKernels {
  KernelId lines, columns, parts;
  uint32_t value_bytes;  // of what one part leaves
};
inline ReductionKernels find_reduction(const std::string& name, const std::string& type, uint32_t value_bytes) {
  return {find_kernel(name + "_lines_" + type), find_kernel(name + "_columns_" + type),
          find_kernel(name + "_parts_" + type), value_bytes};
}
using ReductionsByType = std::array<ReductionKernels, type_count>;

// Attribute 0: the axes, all of them where it is missing.
dvt_status run_reduction(dvt_device*, const dvt_call*, const ReductionKernels&);
dvt_status query_reduction(const dvt_call*, dvt_answer*, const ReductionKernels&);

template <OpName op>
inline constinit ReductionsByType reductions_by_type{};

// A row of an op over inputs of `type`, with the kernels <op>_..._<kernel_type>.
template <OpName op>
void add_reduction(dvt::KernelTable& table, DLDataType type, DLDataType kernel_type, DLDataType result,
                   uint32_t value_bytes) {
  reductions_by_type<op>[type_index(type)] =
      find_reduction(std::string(op.stem()), type_name(kernel_type), value_bytes);
  dvt::Row row(op.text, [](dvt_device* d, const dvt_call* c) {
    return run_reduction(d, c, reductions_by_type<op>[type_index(c->in[0]->dtype)]);
  });
  row.query([](dvt_device*, const dvt_call* c, dvt_answer* answer) {
    return query_reduction(c, answer, reductions_by_type<op>[type_index(c->in[0]->dtype)]);
  });
  table.add(row.in(type, DVT_O_STRIDED).out(result).deterministic());
}
}  // namespace gpu
