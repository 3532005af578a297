#include "elementwise.hpp"

#include <algorithm>
#include <utility>

#include "dovetail/elementwise.hpp"
#include "kernels/common/pack.hpp"

namespace gpu {
namespace {
template <int inputs>
dvt_status run(dvt_device* d, const dvt_call* c, const ElementwiseKernels& kernels) {
  uint32_t widest = bytes_of(c->out[0]->dtype);
  for (int i = 0; i < inputs; ++i) widest = std::max(widest, bytes_of(c->in[i]->dtype));
  const uint64_t pack = pack_bytes / widest;  // a thread takes as many neighbours as the widest access has
  return dvt::for_each_launch<inputs>(c, [&](auto& data, const dvt::Layout<inputs>& how) {
    const bool dense = how.is_dense();
    const Grid grid = dense ? grid_of((how.columns + pack - 1) / pack) : grid_of_rows(how.rows, how.columns);
    return [&]<size_t... k>(std::index_sequence<k...>) {
      return launch(d, c, dense ? kernels.dense : kernels.strided, grid, data[k]..., how);
    }(std::make_index_sequence<inputs + 1>());
  });
}
}  // namespace

dvt_status run_elementwise(dvt_device* d, const dvt_call* c, const ElementwiseKernels& kernels) {
  switch (c->n_in) {
    case 1: return run<1>(d, c, kernels);
    case 2: return run<2>(d, c, kernels);
    default: return run<3>(d, c, kernels);
  }
}
}  // namespace gpu
