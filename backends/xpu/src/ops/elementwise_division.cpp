#include "elementwise.hpp"

namespace xpu {
void XPU_ROWS(dvt::KernelTable& table) { add_elementwise<"dvt.quotient">(table, 2, integers); }
}  // namespace xpu
