// Reductions and cumulative ops: their kernels, how rows are cut into parts, and the launches.
#include "gpu/reduction_rows.hpp"
#include "row_grids.hpp"

namespace gpu {
ReductionKernels find_any(DLDataType type, bool every) {
  return find_reduction(every ? "all" : "any", without_sign(type), 1);
}
ReductionKernels find_max(DLDataType type, bool least) {
  return find_reduction(least ? "min" : "max", type, computed_bytes(type));
}
ReductionKernels find_argmax(DLDataType type, bool least) {
  constexpr uint32_t value_bytes = 16;  // a value and its index
  return find_reduction(least ? "argmin" : "argmax", type, value_bytes);
}
ReductionKernels find_sum(DLDataType type, bool mean) {
  return find_reduction(mean ? "mean" : "sum", without_sign(type), total_bytes(type, true));
}
void cut_long_rows(ReductionPlan& how, bool columns) {
  constexpr uint64_t enough_groups = 512, most_parts = 256;
  const uint64_t groups = 1 + (columns ? how.count / 64 : how.count), shortest = columns ? 64 : 4096;
  const uint64_t wanted = std::min({how.size / shortest, enough_groups / groups, most_parts});
  how.parts = std::max<uint64_t>(wanted, 1);
}
Grid grid_of_reduction(ReductionPlan& how, bool columns, uint32_t) {
  return columns ? grid_of_columns(how) : grid_of_groups(how.count * how.parts, how.size / how.parts);
}
Grid grid_of_parts(const ReductionPlan& how) { return grid_of_groups(how.count, how.parts); }

// ---- cumulative_sum, cumulative_prod -----------------------------------------------------

KernelId find_totals(std::string_view op, DLDataType type) {
  return find_kernel(std::string(op) + "_totals", type);
}
// A sum of floats grows in twice the bits (dvt::CompensatedSum).
uint32_t total_bytes(DLDataType type, bool is_sum) {
  return is_sum && is_float(type) ? 2 * computed_bytes(type) : computed_bytes(type);
}

PlannedReduction plan_scan(const dvt_call* c) {
  constexpr uint64_t enough_groups = 512, shortest = 8192, most_parts = 256;
  const DLTensor *x = c->in[0], *out = c->out[0];
  PlannedReduction p{plan_rows(x, 1u << dvt::Attrs(c).i64(0), out->strides), false};
  if (p.how.count >= enough_groups || p.how.size < shortest) p.columns = prefer_columns(p.how);
  if (!p.columns)
    p.how.parts =
        std::clamp<uint64_t>(std::min(p.how.size / shortest, enough_groups / (p.how.count + 1)), 1, most_parts);
  return p;
}

Grid grid_of_scan(ReductionPlan& how, bool columns, uint32_t bytes) {
  return grid_of_reduction(how, columns, bytes);
}
dvt_status total_parts(dvt_device* d, const dvt_call* c, const ScanKernels& k, const Grid& grid, void* partial,
                       const ReductionPlan& how) {
  const void* const x = dvt::data<void>(c->in[0]);
  if (dvt_status s = launch(d, c, k.totals, grid, x, partial, how)) return s;
  return launch(d, c, k.parts, grid_of(how.count), partial, how);
}
}  // namespace gpu
