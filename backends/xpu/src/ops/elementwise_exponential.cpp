#include "elementwise.hpp"

namespace xpu {
void XPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.exp">(table, 1, floats);
  add_elementwise<"dvt.log">(table, 1, floats);
  add_elementwise<"dvt.sqrt">(table, 1, floats);
}
}  // namespace xpu
