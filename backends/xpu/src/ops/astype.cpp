#include "elementwise.hpp"

namespace xpu {
namespace {
constinit std::array<KernelsByType, type_count> kernels{};  // [from][to]

dvt_status run(dvt_device* d, const dvt_call* c) {
  return run_elementwise(d, c, kernels[type_index(c->in[0]->dtype)][type_index(c->out[0]->dtype)]);
}
}  // namespace

void XPU_ROWS(dvt::KernelTable& table) {
  const auto add = [&](DLDataType from, DLDataType to) {
    kernels[type_index(from)][type_index(to)] =
        find_elementwise(std::string("astype_") + type_name(from) + "_" + type_name(to));
    dvt::Row row("dvt.astype", run);
    row.in(from, any_operand).out(to).deterministic();
    if (dvt::same(from, dvt::f64) || dvt::same(to, dvt::f64)) row.query(query_fp64);
    table.add(row);
  };
  const Types all = boolean + integers + floats;
  for (const DLDataType from : all)
    for (const DLDataType to : all) add(from, to);
  for (const DLDataType float8 : floats8)
    for (const DLDataType other : floats) {
      add(other, float8);
      if (!dvt::same(other, dvt::f64)) add(float8, other);
    }
}
}  // namespace xpu
