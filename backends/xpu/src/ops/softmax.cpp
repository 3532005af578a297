#include "gpu/normalization_rows.hpp"
#include "lines.hpp"

namespace gpu {
namespace {
struct Kernels {
  KernelId lines, columns;
};
Kernels find(std::string_view op, DLDataType type) {
  const std::string name(op);
  return {find_kernel(name + "_lines", type), find_kernel(name + "_columns", type)};
}

dvt_status run(dvt_device* d, const dvt_call* c, const Kernels& k) {
  const DLTensor *x = c->in[0], *out = c->out[0];
  Lines how = plan_lines(x, 1u << dvt::Attrs(c).i64(0), out->strides);
  const bool columns = prefer_columns(how);
  return launch(d, c, columns ? k.columns : k.lines,
                columns ? grid_of_columns(how) : grid_of_groups(how.count, how.size), dvt::data<void>(x),
                dvt::data<void>(out), how);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) { add_softmax<Kernels, run>(table, find); }
}  // namespace gpu
