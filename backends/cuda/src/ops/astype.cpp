#include "elementwise.hpp"

namespace gpu {
namespace {
constinit std::array<KernelsByType, type_count> kernels{};  // [from][to]

dvt_status run(dvt_device* d, const dvt_call* c) {
  return run_elementwise(d, c, kernels[type_index(c->in[0]->dtype)][type_index(c->out[0]->dtype)]);
}

// The kernel that makes the same bits.
ElementwiseKernels find(DLDataType from, DLDataType to) {
  const bool loses_bits = to.code == DVT_BOOL || (!is_float(to) && to.bits <= from.bits);
  const DLDataType read = loses_bits ? without_sign(from) : without_bool(from);
  const DLDataType written = to.code == DVT_INT ? unsigned_of(to) : to;
  return find_elementwise(std::string("astype_") + type_name(read) + "_" + type_name(written));
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  const auto add = [&](DLDataType from, DLDataType to) {
    kernels[type_index(from)][type_index(to)] = find(from, to);
    dvt::Row row("dvt.astype", run);
    row.in(from, any_operand).out(to).deterministic();
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
}  // namespace gpu
