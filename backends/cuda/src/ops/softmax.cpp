#include "gpu/normalization_rows.hpp"
#include "row_grids.hpp"

namespace gpu {
namespace {
struct Kernels {
  KernelId in_registers, rows, columns;
};
Kernels find(std::string_view op, DLDataType type) {
  const std::string name(op);
  return {find_kernel(name + "_in_registers", type), find_kernel(name + "_rows", type),
          find_kernel(name + "_columns", type)};
}

dvt_status run(dvt_device* d, const dvt_call* c, const Kernels& k) {
  const DLTensor *x = c->in[0], *out = c->out[0];
  const void* const from = dvt::data<void>(x);
  void* const to = dvt::data<void>(out);
  const uint32_t bytes = bytes_of(x->dtype);
  ReductionPlan how = plan_rows(x, 1u << dvt::Attrs(c).i64(0), out->strides);
  if (fits_registers(how, bytes)) {
    const uint32_t packed = is_packed(how, bytes, {from, to});
    return launch(d, c, k.in_registers, grid_of_register_rows(how, bytes), from, to, how, packed);
  }
  if (prefer_columns(how)) return launch(d, c, k.columns, grid_of_columns(how), from, to, how);
  const uint64_t each = how.axis[how.kept].stride[0] == 1 ? pack_bytes / bytes : 1;
  return launch(d, c, k.rows, grid_of_reduction_rows(how, each, most_register_threads), from, to, how);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) { add_softmax<Kernels, run>(table, find); }
}  // namespace gpu
