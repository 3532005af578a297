#include "elementwise.hpp"

namespace xpu {
void XPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.add">(table, 2, integers + floats);
  add_elementwise<"dvt.subtract">(table, 2, integers + floats);
  add_elementwise<"dvt.multiply">(table, 2, integers + floats);
  add_elementwise<"dvt.divide">(table, 2, floats);
  add_elementwise<"dvt.maximum">(table, 2, boolean + integers + floats);
  add_elementwise<"dvt.minimum">(table, 2, boolean + integers + floats);
}
}  // namespace xpu
