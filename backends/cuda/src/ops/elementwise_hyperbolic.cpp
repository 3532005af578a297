#include "elementwise.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.sinh">(table, 1, floats);
  add_elementwise<"dvt.cosh">(table, 1, floats);
  add_elementwise<"dvt.asinh">(table, 1, floats);
  add_elementwise<"dvt.acosh">(table, 1, floats);
  add_elementwise<"dvt.atanh">(table, 1, floats);
}
}  // namespace gpu
