#include "elementwise.hpp"

namespace xpu {
void XPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.quotient">(table, 2, integers);
  add_elementwise<"dvt.floor_divide">(table, 2, integers + floats);
  add_elementwise<"dvt.remainder">(table, 2, integers + floats);
}
}  // namespace xpu
