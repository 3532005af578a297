#include "elementwise.hpp"

namespace xpu {
void XPU_ROWS(dvt::KernelTable& table) { add_elementwise<"dvt.floor">(table, 1, integers + floats); }
}  // namespace xpu
