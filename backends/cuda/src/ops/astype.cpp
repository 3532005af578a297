#include "elementwise.hpp"

namespace gpu {
namespace {
constinit std::array<KernelsByType, type_count> kernels{};  // [from][to]

dvt_status run(dvt_device* d, const dvt_call* c) {
  return run_elementwise(d, c, kernels[type_index(c->in[0]->dtype)][type_index(c->out[0]->dtype)]);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  const Types all = boolean + integers + floats;
  for (const DLDataType from : all)
    for (const DLDataType to : all) {
      const std::string name = std::string("astype_") + type_name(from) + "_" + type_name(to);
      kernels[type_index(from)][type_index(to)] = find_elementwise(name);
      dvt::Row row("dvt.astype", run);
      row.in(from, any_operand).out(to).deterministic();
      table.add(row);
    }
}
}  // namespace gpu
