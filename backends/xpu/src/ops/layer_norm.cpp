#include "gpu/normalization_rows.hpp"
#include "row_grids.hpp"

namespace gpu {
namespace {
struct Norm {
  template <class Float>
  static dvt_status run(dvt_device* d, const dvt_call* c, const KernelId& kernel, bool centred) {
    const NormRows norm(c);
    const Grid grid = grid_of_groups(norm.rows, norm.size);
    const auto eps = Float(dvt::Attrs(c).f64(1));
    const void *x = dvt::data<void>(c->in[0]), *weight = optional_data(c, 1);
    void* const out = dvt::data<void>(c->out[0]);
    return centred ? launch(d, c, kernel, grid, x, weight, optional_data(c, 2), out, norm.rows, norm.size, eps)
                   : launch(d, c, kernel, grid, x, weight, out, norm.rows, norm.size, eps);
  }
};
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) { add_norms<Norm, KernelId>(table, find_kernel); }
}  // namespace gpu
