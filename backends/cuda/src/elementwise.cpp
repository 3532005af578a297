#include "gpu/elementwise.hpp"

#include <utility>

#include "dovetail/elementwise.hpp"
#include "kernels/common/pack.hpp"

namespace gpu {
dvt_status run_elementwise(dvt_device* d, const dvt_call* c, const ElementwiseKernels& kernels) {
  return with_inputs(c, [&]<int inputs>() {
    uint32_t widest = bytes_of(c->out[0]->dtype);
    for (int i = 0; i < inputs; ++i) widest = std::max(widest, bytes_of(c->in[i]->dtype));
    const uint64_t pack = pack_bytes / widest;  // a thread takes as many contiguous elements as one access has
    return dvt::for_each_launch<inputs>(c, [&](auto& data, const dvt::Layout<inputs>& how) {
      const bool dense = how.is_dense();
      const Grid grid = dense ? grid_of((how.columns + pack - 1) / pack) : grid_of_rows(how.rows, how.columns);
      return [&]<size_t... k>(std::index_sequence<k...>) {
        return launch(d, c, dense ? kernels.dense : kernels.strided, grid, data[k]..., how);
      }(std::make_index_sequence<inputs + 1>());
    });
  });
}
}  // namespace gpu
