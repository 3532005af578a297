#include "gpu/elementwise.hpp"

#include <utility>

#include "dovetail/elementwise.hpp"
#include "kernels/common/layout.hpp"

namespace gpu {
dvt_status run_elementwise(dvt_device* d, const dvt_call* c, const ElementwiseKernels& kernels) {
  return with_inputs(c, [&]<int inputs>() {
    return dvt::for_each_launch<inputs>(c, [&](auto& data, const dvt::Layout<inputs>& layout) {
      const Grid grid = grid_of_rows(layout.rows, layout.columns);
      const auto tile = uint32_t((layout.columns + grid.global[1] - 1) / grid.global[1] * grid.local[1]);
      const Layout<inputs> how{layout, tile};
      return [&]<size_t... k>(std::index_sequence<k...>) {
        return launch(d, c, layout.is_dense() ? kernels.dense : kernels.strided, grid, data[k]..., how);
      }(std::make_index_sequence<inputs + 1>());
    });
  });
}
}  // namespace gpu
