#include "elementwise.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.logical_and">(table, 2, integers + floats, &dvt::boolean, without_sign);
  add_elementwise<"dvt.logical_or">(table, 2, integers + floats, &dvt::boolean, without_sign);
  add_elementwise<"dvt.logical_xor">(table, 2, integers + floats, &dvt::boolean, without_sign);
  add_elementwise<"dvt.logical_not">(table, 1, integers + floats, &dvt::boolean, without_sign);
}
}  // namespace gpu
