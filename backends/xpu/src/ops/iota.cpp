#include <array>
#include <string>

#include "dtypes.hpp"
#include "launch.hpp"

namespace xpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

dvt_status run(dvt_device* d, const dvt_call* c) {
  const DLTensor* out = c->out[0];
  const uint64_t n = uint64_t(dvt::size(out));
  return launch(d, c, kernels[type_index(out->dtype)], range_of(n), dvt::data<void>(out), n);
}
}  // namespace

void XPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : integers + floats) {
    kernels[type_index(type)] = find_kernel(std::string("iota_") + type_name(type));
    dvt::Row row("dvt.iota", run);
    row.out(type).deterministic();
    if (dvt::same(type, dvt::f64)) row.query(query_fp64);
    table.add(row);
  }
}
}  // namespace xpu
