#include "gpu/normalization_rows.hpp"
#include "row_grids.hpp"

namespace gpu {
namespace {
struct Kernels {
  KernelId in_registers, rows;
};
Kernels find(std::string_view op, DLDataType type) {
  const std::string name(op);
  return {find_kernel(name + "_in_registers", type), find_kernel(name + "_rows", type)};
}

struct Norm {
  template <class Float>
  static dvt_status run(dvt_device* d, const dvt_call* c, const Kernels& k, bool centred) {
    const uint32_t bytes = bytes_of(c->in[0]->dtype);
    const NormRows norm(c);
    ReductionPlan how = plan_rows(norm.rows, norm.size);
    const auto eps = Float(dvt::Attrs(c).f64(1));
    const void *from = dvt::data<void>(c->in[0]), *weight = optional_data(c, 1);
    const void* const bias = centred ? optional_data(c, 2) : nullptr;
    void* const out = dvt::data<void>(c->out[0]);
    const bool in_registers = fits_registers(how, bytes) && is_packed(how, bytes, {from, weight, bias, out});
    const Grid grid = in_registers ? grid_of_register_rows(how, bytes)
                                   : grid_of_reduction_rows(how, pack_bytes / bytes, most_register_threads);
    const KernelId kernel = in_registers ? k.in_registers : k.rows;
    return centred ? launch(d, c, kernel, grid, from, weight, bias, out, how, eps)
                   : launch(d, c, kernel, grid, from, weight, out, how, eps);
  }
};
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) { add_norms<Norm>(table, find); }
}  // namespace gpu
