// The host side of reductions (kernels/common/reduction.cuh).
#pragma once
#include <array>
#include <string>

#include "dtypes.hpp"
#include "elementwise.hpp"
#include "kernels/common/reduction.hpp"
#include "lines.hpp"

namespace gpu {
struct ReductionKernels {
  KernelId lines, columns, parts;
  uint32_t value_bytes;  // of what one part leaves
  Variant variant;
};
inline ReductionKernels find_reduction(const std::string& name, DLDataType type, uint32_t value_bytes,
                                       const Variant& variant = {}) {
  const std::string end = type_name(type);
  return {find_kernel(name + "_lines_" + end), find_kernel(name + "_columns_" + end),
          find_kernel(name + "_parts_" + end), value_bytes, variant};
}
using ReductionsByType = std::array<ReductionKernels, type_count>;

// What makes a type's greatest number, or its least, the greatest of the type without_sign.
inline Variant in_order(DLDataType type, bool least) {
  const uint64_t all = ~uint64_t{0} >> (64 - type.bits), sign = uint64_t{1} << (type.bits - 1);
  if (is_float(type)) return {.flip = least ? sign : 0};
  return {.flip = (least ? all : 0) ^ (type.code == DVT_INT ? sign : 0)};
}

// Attribute 0: the axes, all of them where it is missing.
dvt_status run_reduction(dvt_device*, const dvt_call*, const ReductionKernels&);
dvt_status query_reduction(const dvt_call*, dvt_answer*, const ReductionKernels&);

template <OpName op>
inline constinit ReductionsByType reductions_by_type{};

// A row of an op over inputs of `type`.
template <OpName op>
void add_reduction(dvt::KernelTable& table, DLDataType type, DLDataType result, const ReductionKernels& kernels) {
  reductions_by_type<op>[type_index(type)] = kernels;
  dvt::Row row(op.text, [](dvt_device* d, const dvt_call* c) {
    return run_reduction(d, c, reductions_by_type<op>[type_index(c->in[0]->dtype)]);
  });
  row.query([](dvt_device*, const dvt_call* c, dvt_answer* answer) {
    return query_reduction(c, answer, reductions_by_type<op>[type_index(c->in[0]->dtype)]);
  });
  table.add(row.in(type, DVT_O_STRIDED).out(result).deterministic());
}
}  // namespace gpu
