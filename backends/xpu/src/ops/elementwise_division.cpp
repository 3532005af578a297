#include "elementwise.hpp"

namespace xpu {
void XPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.divide">(table, 2, floats);
  add_elementwise<"dvt.sqrt">(table, 1, floats);
  add_elementwise<"dvt.quotient">(table, 2, integers);
}
}  // namespace xpu
