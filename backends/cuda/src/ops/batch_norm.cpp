#include <array>
#include <string>

#include "gpu/by_type.hpp"
#include "row_grids.hpp"

namespace gpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

template <class Float>
dvt_status run_with(dvt_device* d, const dvt_call* c) {
  const DLTensor* x = c->in[0];
  const auto vector = [&](uint32_t i) -> const void* {
    return dvt::has_in(c, i) ? dvt::data<void>(c->in[i]) : nullptr;
  };
  const Channels how = plan_channels(x, 1);
  return launch(d, c, kernels[type_index(x->dtype)], grid_of_channels(how, bytes_of(x->dtype)), vector(0),
                vector(1), vector(2), vector(3), vector(4), dvt::data<void>(c->out[0]), how,
                Float(dvt::Attrs(c).f64(0)));
}
dvt_status run(dvt_device* d, const dvt_call* c) {
  return dvt::same(c->in[0]->dtype, dvt::f64) ? run_with<double>(d, c) : run_with<float>(d, c);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : floats) {
    kernels[type_index(type)] = find_kernel("batch_norm", type);
    dvt::Row row("dvt.batch_norm", run);
    row.in(type).in(type).in(type).in(type, DVT_O_OPTIONAL).in(type, DVT_O_OPTIONAL);
    table.add(row.out(type).deterministic());
  }
}
}  // namespace gpu
