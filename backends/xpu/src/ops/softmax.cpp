#include "gpu/normalization_rows.hpp"
#include "row_grids.hpp"

namespace gpu {
namespace {
struct Kernels {
  KernelId rows, columns;
};
Kernels find(std::string_view op, DLDataType type) {
  const std::string name(op);
  return {find_kernel(name + "_rows", type), find_kernel(name + "_columns", type)};
}

dvt_status run(dvt_device* d, const dvt_call* c, const Kernels& k) {
  const DLTensor *x = c->in[0], *out = c->out[0];
  ReductionPlan how = plan_rows(x, 1u << dvt::Attrs(c).i64(0), out->strides);
  const bool columns = prefer_columns(how);
  return launch(d, c, columns ? k.columns : k.rows,
                columns ? grid_of_columns(how) : grid_of_groups(how.count, how.size), dvt::data<void>(x),
                dvt::data<void>(out), how);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) { add_softmax<Kernels, run>(table, find); }
}  // namespace gpu
