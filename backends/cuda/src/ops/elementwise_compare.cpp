#include "elementwise.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.equal">(table, 2, boolean + integers + floats, &dvt::boolean);
  add_elementwise<"dvt.not_equal">(table, 2, boolean + integers + floats, &dvt::boolean);
  add_elementwise<"dvt.less">(table, 2, boolean + integers + floats, &dvt::boolean);
  add_elementwise<"dvt.less_equal">(table, 2, boolean + integers + floats, &dvt::boolean);
  add_elementwise<"dvt.greater_equal">(table, 2, boolean + integers + floats, &dvt::boolean);
  add_elementwise<"dvt.isinf">(table, 1, floats, &dvt::boolean);
  add_elementwise<"dvt.isfinite">(table, 1, floats, &dvt::boolean);
}
}  // namespace gpu
