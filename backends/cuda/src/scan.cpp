// cumulative_sum and cumulative_prod: how lines are cut into parts, and the launches.
#include "gpu/reduction_rows.hpp"
#include "lines.hpp"

namespace gpu {
namespace {
// The lines as reductions see them, whose results are contiguous.
Lines numbered(Lines how) {
  int64_t step = 1;
  for (uint32_t a = how.kept; a-- > 0; step *= int64_t(how.axis[a].size.value)) how.axis[a].stride[1] = step;
  return how;
}
}  // namespace

KernelId find_totals(std::string_view op, DLDataType type) {
  return find_kernel(std::string(op.substr(op.find('_') + 1)) + "_lines", type);  // of sum, prod
}
// A sum of floats grows in twice the bits (kernels/common/sum.cuh).
uint32_t total_bytes(DLDataType type, bool is_sum) {
  return is_sum && is_float(type) && type.bits > 16 ? 2 * bytes_of(type) : computed_bytes(type);
}

LinesPlan plan_scan(const dvt_call* c) {
  constexpr uint64_t enough_columns = 1 << 13, shortest = 8192, enough_blocks = 1024, most_parts = 256;
  const DLTensor *x = c->in[0], *out = c->out[0];
  LinesPlan p{plan_lines(x, 1u << dvt::Attrs(c).i64(0), out->strides), false};
  // A thread alone for each line: only where there are many, or they are short.
  if (p.how.count >= enough_columns || p.how.size < shortest) p.columns = prefer_columns(p.how);
  if (p.columns) return p;
  const uint64_t parts =
      std::min({p.how.size / shortest, enough_blocks / std::max<uint64_t>(p.how.count, 1), most_parts});
  if (parts > 1) cut(p.how, parts);
  return p;
}

dvt_status run_scan(dvt_device* d, const dvt_call* c, const ScanKernels& k) {
  auto [how, columns] = plan_scan(c);
  const void* const x = dvt::data<void>(c->in[0]);
  void* const out = dvt::data<void>(c->out[0]);
  const uint32_t initial = dvt::Attrs(c).boolean(2);
  if (columns) return launch(d, c, k.columns, grid_of_columns(how, 1), x, out, how, initial);
  const Grid grid = grid_of_lines(how, pack_bytes / bytes_of(c->in[0]->dtype));
  void* const partial = how.parts.value > 1 ? c->workspace : nullptr;
  if (partial) {
    void* const nowhere = nullptr;
    if (dvt_status s = launch(d, c, k.totals, grid, x, partial, nowhere, numbered(how), Variant{})) return s;
    if (dvt_status s = launch(d, c, k.parts, grid_of(how.count * 32), partial, how)) return s;
  }
  return launch(d, c, k.lines, grid, x, partial, out, how, initial);
}
}  // namespace gpu
