#include "elementwise.hpp"

namespace xpu {
void XPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.sin">(table, 1, floats);
  add_elementwise<"dvt.cos">(table, 1, floats);
}
}  // namespace xpu
