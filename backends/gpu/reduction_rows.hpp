// The rows of reductions and of cumulative ops, by the families of their kernels.
#pragma once
#include "gpu/by_type.hpp"
#include "gpu/plan.hpp"
#include "reduction.hpp"

namespace gpu {
// ---- what a backend defines -------------------------------------------------------------

// Kernels for inputs of a type; `least`: of min and argmin, `every`: of all.
ReductionKernels find_any(DLDataType, bool every);
ReductionKernels find_max(DLDataType, bool least);
ReductionKernels find_argmax(DLDataType, bool least);
ReductionKernels find_sum(DLDataType, bool mean);
// Few and long rows are cut into parts, so that there is work for a whole GPU.
void cut_long_rows(ReductionPlan&, bool columns);
// The grids of a reduction of elements of so many bytes, and of the kernel that joins the parts.
Grid grid_of_reduction(ReductionPlan&, bool columns, uint32_t bytes);
Grid grid_of_parts(const ReductionPlan&);

struct ScanKernels {
  KernelId rows, columns, totals, parts;
  uint32_t value_bytes;  // of the total of one part
};
// The kernel that reduces each part, of cumulative_sum or cumulative_prod.
KernelId find_totals(std::string_view op, DLDataType kernel_type);
// The bytes of the total of one part, in the type in which `sum` or `prod` is computed.
uint32_t total_bytes(DLDataType, bool is_sum);
PlannedReduction plan_scan(const dvt_call*);
Grid grid_of_scan(ReductionPlan&, bool columns, uint32_t bytes);
// Leaves the total of what comes before each part in `partial`.
dvt_status total_parts(dvt_device*, const dvt_call*, const ScanKernels&, const Grid&, void* partial,
                       const ReductionPlan&);

// ---- reductions -------------------------------------------------------------------------

inline ReductionKernels find_reduction(std::string_view op, DLDataType type, uint32_t value_bytes) {
  const std::string name(op);
  ReductionKernels k{};
  k.rows = find_kernel(name + "_rows", type), k.columns = find_kernel(name + "_columns", type);
  k.parts = find_kernel(name + "_parts", type), k.value_bytes = value_bytes;
  return k;
}
inline ReductionKernels find_prod(DLDataType type) {
  return find_reduction("prod", without_sign(type), total_bytes(type, false));
}

inline PlannedReduction plan_parts(const dvt_call* c) {
  PlannedReduction p{plan_reduction(c), false};
  p.columns = prefer_columns(p.how);
  cut_long_rows(p.how, p.columns);
  return p;
}
inline dvt_status run_reduction(dvt_device* d, const dvt_call* c, const ReductionKernels& kernels) {
  auto [how, columns] = plan_parts(c);
  const Grid grid = grid_of_reduction(how, columns, bytes_of(c->in[0]->dtype));
  const bool whole = value_of(how.parts) == 1;
  void *const partial = whole ? nullptr : c->workspace, *const out = dvt::data<void>(c->out[0]);
  const KernelId kernel = columns ? kernels.columns : kernels.rows;
  if (dvt_status s = kernels.launch(d, c, kernel, grid, dvt::data<void>(c->in[0]), partial, out, how)) return s;
  return whole ? DVT_OK : kernels.launch(d, c, kernels.parts, grid_of_parts(how), partial, out, how);
}
inline dvt_status query_reduction(dvt_device* d, const dvt_call* c, dvt_answer* answer, const ReductionKernels& k) {
  return query_parts(d, c, answer, plan_parts(c).how, k.value_bytes);
}
template <OpName op>
void add_reduction(dvt::KernelTable& table, DLDataType type, DLDataType result, const ReductionKernels& kernels) {
  kernels_for<op, ReductionKernels>(type) = kernels;
  dvt::Row row(op.text, run_by_type<op, ReductionKernels, run_reduction>);
  row.query(query_by_type<op, ReductionKernels, query_reduction>);
  table.add(row.in(type, DVT_O_STRIDED).out(result).deterministic());
}

inline void add_any(dvt::KernelTable& table) {
  for (const DLDataType type : boolean + integers + floats) {
    add_reduction<"dvt.any">(table, type, dvt::boolean, find_any(type, false));
    add_reduction<"dvt.all">(table, type, dvt::boolean, find_any(type, true));
  }
}
inline void add_max(dvt::KernelTable& table) {
  for (const DLDataType type : boolean + integers + floats) {
    add_reduction<"dvt.max">(table, type, type, find_max(type, false));
    add_reduction<"dvt.min">(table, type, type, find_max(type, true));
  }
}
inline void add_argmax(dvt::KernelTable& table) {
  for (const DLDataType type : integers + floats) {
    add_reduction<"dvt.argmax">(table, type, dvt::i64, find_argmax(type, false));
    add_reduction<"dvt.argmin">(table, type, dvt::i64, find_argmax(type, true));
  }
}
inline void add_sum(dvt::KernelTable& table) {
  for (const DLDataType type : integers + floats) {
    add_reduction<"dvt.sum">(table, type, type, find_sum(type, false));
    add_reduction<"dvt.prod">(table, type, type, find_prod(type));
    if (is_float(type)) add_reduction<"dvt.mean">(table, type, type, find_sum(type, true));
  }
}

// ---- cumulative ops ---------------------------------------------------------------------

inline dvt_status run_scan(dvt_device* d, const dvt_call* c, const ScanKernels& k) {
  auto [how, columns] = plan_scan(c);
  const void* const x = dvt::data<void>(c->in[0]);
  void* const out = dvt::data<void>(c->out[0]);
  const uint32_t initial = dvt::Attrs(c).boolean(2);
  const Grid grid = grid_of_scan(how, columns, bytes_of(c->in[0]->dtype));
  if (columns) return launch(d, c, k.columns, grid, x, out, how, initial);
  void* const partial = value_of(how.parts) > 1 ? c->workspace : nullptr;
  if (partial)
    if (dvt_status s = total_parts(d, c, k, grid, partial, how)) return s;
  return launch(d, c, k.rows, grid, x, partial, out, how, initial);
}
inline dvt_status query_scan(dvt_device* d, const dvt_call* c, dvt_answer* answer, const ScanKernels& k) {
  return query_parts(d, c, answer, plan_scan(c).how, k.value_bytes);
}
template <OpName op>
void add_scan(dvt::KernelTable& table, DLDataType type, bool is_sum) {
  const DLDataType kernel_type = without_sign(type);
  const auto find = [&](const char* which) { return find_kernel(std::string(op.stem()) + which, kernel_type); };
  kernels_for<op, ScanKernels>(type) = {find("_rows"), find("_columns"), find_totals(op.stem(), kernel_type),
                                        find("_parts"), total_bytes(type, is_sum)};
  dvt::Row row(op.text, run_by_type<op, ScanKernels, run_scan>);
  row.query(query_by_type<op, ScanKernels, query_scan>);
  table.add(row.in(type, DVT_O_STRIDED).out(type).deterministic());
}
inline void add_scans(dvt::KernelTable& table) {
  for (const DLDataType type : integers + floats) {
    add_scan<"dvt.cumulative_sum">(table, type, true);
    add_scan<"dvt.cumulative_prod">(table, type, false);
  }
}
}  // namespace gpu
