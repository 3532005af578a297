// Reductions and cumulative ops: their kernels, how lines are cut into parts, and the launches.
#include "gpu/reduction_rows.hpp"
#include "lines.hpp"

namespace gpu {
namespace {
ReductionKernels find(std::string_view op, DLDataType type, uint32_t value_bytes) {
  const std::string name(op);
  return {find_kernel(name + "_lines", type), find_kernel(name + "_columns", type),
          find_kernel(name + "_parts", type), value_bytes};
}

// Few and long lines are cut into parts, so that there is work for a whole GPU.
uint64_t parts_of(const Lines& how, bool columns) {
  constexpr uint64_t enough_groups = 512, most_parts = 256;
  const uint64_t groups = 1 + (columns ? how.count / 64 : how.count), shortest = columns ? 64 : 4096;
  const uint64_t wanted = std::min({how.size / shortest, enough_groups / groups, most_parts});
  return std::max<uint64_t>(wanted, 1);
}
}  // namespace

ReductionKernels find_any(DLDataType type, bool every) {
  return find(every ? "all" : "any", without_sign(type), 1);
}
ReductionKernels find_max(DLDataType type, bool least) {
  return find(least ? "min" : "max", type, computed_bytes(type));
}
ReductionKernels find_argmax(DLDataType type, bool least) {
  constexpr uint32_t value_bytes = 16;  // a value and its index
  return find(least ? "argmin" : "argmax", type, value_bytes);
}
ReductionKernels find_sum(DLDataType type, bool mean) {
  return find(mean ? "mean" : "sum", without_sign(type), total_bytes(type, true));
}
ReductionKernels find_prod(DLDataType type) { return find("prod", without_sign(type), total_bytes(type, false)); }

LinesPlan plan_parts(const dvt_call* c) {
  LinesPlan p{plan_reduction(c), false};
  p.columns = prefer_columns(p.how);
  p.how.parts = parts_of(p.how, p.columns);
  return p;
}

dvt_status run_reduction(dvt_device* d, const dvt_call* c, const ReductionKernels& kernels) {
  const auto [how, columns] = plan_parts(c);
  const uint64_t part = how.size / how.parts;
  const Grid grid = columns ? grid_of_columns(how) : grid_of_groups(how.count * how.parts, part);
  void* const partial = how.parts > 1 ? c->workspace : nullptr;
  void* const out = dvt::data<void>(c->out[0]);
  if (dvt_status s = launch(d, c, columns ? kernels.columns : kernels.lines, grid, dvt::data<void>(c->in[0]),
                            partial, out, how))
    return s;
  if (how.parts == 1) return DVT_OK;
  return launch(d, c, kernels.parts, grid_of_groups(how.count, how.parts), partial, out, how);
}

// ---- cumulative_sum, cumulative_prod -----------------------------------------------------

KernelId find_totals(std::string_view op, DLDataType type) {
  return find_kernel(std::string(op) + "_totals", type);
}
// A sum of floats grows in twice the bits (dvt::CompensatedSum).
uint32_t total_bytes(DLDataType type, bool is_sum) {
  return is_sum && is_float(type) ? 2 * computed_bytes(type) : computed_bytes(type);
}

LinesPlan plan_scan(const dvt_call* c) {
  constexpr uint64_t enough_groups = 512, shortest = 8192, most_parts = 256;
  const DLTensor *x = c->in[0], *out = c->out[0];
  LinesPlan p{plan_lines(x, 1u << dvt::Attrs(c).i64(0), out->strides), false};
  if (p.how.count >= enough_groups || p.how.size < shortest) p.columns = prefer_columns(p.how);
  if (!p.columns)
    p.how.parts =
        std::clamp<uint64_t>(std::min(p.how.size / shortest, enough_groups / (p.how.count + 1)), 1, most_parts);
  return p;
}

dvt_status run_scan(dvt_device* d, const dvt_call* c, const ScanKernels& k) {
  const auto [how, columns] = plan_scan(c);
  const void* const x = dvt::data<void>(c->in[0]);
  void* const out = dvt::data<void>(c->out[0]);
  const uint32_t initial = dvt::Attrs(c).boolean(2);
  if (columns) return launch(d, c, k.columns, grid_of_columns(how), x, out, how, initial);
  const Grid grid = grid_of_groups(how.count * how.parts, how.size / how.parts);
  void* const partial = how.parts > 1 ? c->workspace : nullptr;
  if (partial) {
    if (dvt_status s = launch(d, c, k.totals, grid, x, partial, how)) return s;
    if (dvt_status s = launch(d, c, k.parts, grid_of(how.count), partial, how)) return s;
  }
  return launch(d, c, k.lines, grid, x, partial, out, how, initial);
}
}  // namespace gpu
