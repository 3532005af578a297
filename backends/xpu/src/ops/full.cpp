#include <array>
#include <string>

#include "dtypes.hpp"
#include "kernels/common/layout.hpp"
#include "launch.hpp"

namespace xpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

dvt_status run(dvt_device* d, const dvt_call* c) {
  const DLTensor* out = c->out[0];
  const uint64_t n = uint64_t(dvt::size(out));
  return launch(d, c, kernels[size_index(out->dtype)], range_of(n), dvt::data<void>(out), n,
                scalar_of(dvt::Attrs(c), 1, out->dtype));
}
}  // namespace

void XPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : sizes)
    kernels[type_index(type)] = find_kernel(std::string("full_") + type_name(type));
  for (const DLDataType type : boolean + integers + floats8 + floats)
    table.add(dvt::Row("dvt.full", run).out(type).deterministic());
}
}  // namespace xpu
