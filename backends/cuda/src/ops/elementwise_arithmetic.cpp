#include "elementwise.hpp"

namespace gpu {
namespace {
constinit KernelsByType clip{};

dvt_status run_clip(dvt_device* d, const dvt_call* c) {
  const size_t type = type_index(c->in[0]->dtype);
  const DLTensor* in[] = {c->in[0], c->in[dvt::has_in(c, 1) ? 1 : 0], nullptr};  // no lower one: x itself
  dvt_call all = *c;
  all.in = in, all.n_in = 2;
  if (!dvt::has_in(c, 2)) return run_elementwise(d, &all, kernels_by_type<"dvt.maximum">[type]);
  in[2] = c->in[2], all.n_in = 3;
  return run_elementwise(d, &all, clip[type]);
}
void add_clip(dvt::KernelTable& table, DLDataType type) {
  clip[type_index(type)] = find_elementwise(std::string("clip_") + type_name(type));
  constexpr unsigned bound = any_operand | DVT_O_ALIAS | DVT_O_OPTIONAL;
  dvt::Row row("dvt.clip", run_clip);
  row.in(type, any_operand | DVT_O_ALIAS).in(type, bound).in(type, bound).out(type).deterministic();
  table.add(row);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.add">(table, 2, integers + floats, nullptr, without_sign);
  add_elementwise<"dvt.subtract">(table, 2, integers + floats, nullptr, without_sign);
  add_elementwise<"dvt.multiply">(table, 2, integers + floats, nullptr, without_sign);
  add_elementwise<"dvt.divide">(table, 2, floats);
  add_elementwise<"dvt.maximum">(table, 2, boolean + integers + floats);
  add_elementwise<"dvt.minimum">(table, 2, boolean + integers + floats);
  for (const DLDataType type : integers + floats) add_clip(table, type);
}
}  // namespace gpu
