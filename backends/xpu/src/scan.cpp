// cumulative_sum and cumulative_prod: how lines are cut into parts, and the launches.
#include "gpu/reduction_rows.hpp"
#include "lines.hpp"

namespace gpu {
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
