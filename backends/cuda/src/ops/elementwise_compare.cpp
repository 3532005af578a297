#include "elementwise.hpp"

namespace gpu {
namespace {
// a >= b as b <= a.
dvt_status run_greater_equal(dvt_device* d, const dvt_call* c) {
  const DLTensor* in[] = {c->in[1], c->in[0]};
  dvt_call exchanged = *c;
  exchanged.in = in;
  return run_by_type<"dvt.less_equal">(d, &exchanged);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.equal">(table, 2, boolean + integers + floats, &dvt::boolean, without_sign);
  add_elementwise<"dvt.not_equal">(table, 2, boolean + integers + floats, &dvt::boolean, without_sign);
  add_elementwise<"dvt.less">(table, 2, boolean + integers + floats, &dvt::boolean);
  add_elementwise<"dvt.less_equal">(table, 2, boolean + integers + floats, &dvt::boolean);
  for (const DLDataType type : boolean + integers + floats) {
    const unsigned flags = any_operand | (dvt::same(type, dvt::boolean) ? DVT_O_ALIAS : 0);
    table.add(dvt::Row("dvt.greater_equal", run_greater_equal)
                  .in(type, flags)
                  .in(type, flags)
                  .out(dvt::boolean)
                  .deterministic());
  }
  add_elementwise<"dvt.isinf">(table, 1, floats, &dvt::boolean);
  add_elementwise<"dvt.isfinite">(table, 1, floats, &dvt::boolean);
}
}  // namespace gpu
