#include "elementwise.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.sin">(table, 1, floats);
  add_elementwise<"dvt.cos">(table, 1, floats);
  add_elementwise<"dvt.tan">(table, 1, floats);
  add_elementwise<"dvt.asin">(table, 1, floats);
  add_elementwise<"dvt.acos">(table, 1, floats);
  add_elementwise<"dvt.atan">(table, 1, floats);
  add_elementwise<"dvt.atan2">(table, 2, floats);
}
}  // namespace gpu
