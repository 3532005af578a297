#include <array>
#include <string>

#include "dtypes.hpp"
#include "launch.hpp"

namespace gpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

dvt_status run(dvt_device* d, const dvt_call* c) {
  const DLTensor* out = c->out[0];
  const uint64_t n = uint64_t(dvt::size(out));
  return launch(d, c, kernels[type_index(out->dtype)], grid_of(n), dvt::data<void>(out), n);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : integers + floats) {
    kernels[type_index(type)] = find_kernel(std::string("iota_") + type_name(type));
    dvt::Row row("dvt.iota", run);
    row.out(type).deterministic();
    table.add(row);
  }
}
}  // namespace gpu
