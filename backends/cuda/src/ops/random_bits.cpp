#include "launch.hpp"

namespace gpu {
namespace {
constinit KernelId kernel{};

dvt_status run(dvt_device* d, const dvt_call* c) {
  const uint64_t n = uint64_t(dvt::size(c->out[0]));
  return launch(d, c, kernel, grid_of((n + 3) / 4), dvt::data<void>(c->in[0]), dvt::data<void>(c->out[0]), n);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  kernel = find_kernel("random_bits");
  table.add(dvt::Row("dvt.random_bits", run).in(dvt::u32).out(dvt::u32).deterministic());
}
}  // namespace gpu
