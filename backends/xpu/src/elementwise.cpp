#include "elementwise.hpp"

#include <utility>

#include "dovetail/elementwise.hpp"
#include "kernels/common/layout.hpp"

namespace xpu {
namespace {
template <int inputs>
dvt_status run(dvt_device* d, const dvt_call* c, const ElementwiseKernels& kernels) {
  return dvt::for_each_launch<inputs>(c, [&](auto& data, const dvt::Layout<inputs>& layout) {
    const Range range = range_of(layout.rows, layout.columns);
    const auto tile = uint32_t((layout.columns + range.global[1] - 1) / range.global[1] * range.local[1]);
    const Layout<inputs> how{layout, tile};
    return [&]<size_t... k>(std::index_sequence<k...>) {
      return launch(d, c, layout.is_dense() ? kernels.dense : kernels.strided, range, data[k]..., how);
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
}  // namespace xpu
