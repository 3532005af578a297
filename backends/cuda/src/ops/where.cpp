#include "elementwise.hpp"

namespace gpu {
namespace {
constinit KernelsByType kernels{};

dvt_status run(dvt_device* d, const dvt_call* c) {
  return run_elementwise(d, c, kernels[size_index(c->out[0]->dtype)]);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : sizes) {
    kernels[type_index(type)] = find_elementwise(std::string("where_") + type_name(type));
    dvt::Row row("dvt.where", run);
    row.in(dvt::boolean, any_operand).in(type, any_operand | DVT_O_ALIAS).in(type, any_operand | DVT_O_ALIAS);
    table.add(row.out(type).deterministic());
  }
}
}  // namespace gpu
