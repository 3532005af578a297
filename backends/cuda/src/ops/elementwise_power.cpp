#include "elementwise.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.pow">(table, 2, integers + floats);
  add_elementwise<"dvt.exp2">(table, 1, floats);
  add_elementwise<"dvt.log2">(table, 1, floats);
  add_elementwise<"dvt.log10">(table, 1, floats);
  add_elementwise<"dvt.hypot">(table, 2, floats);
  add_elementwise<"dvt.logaddexp">(table, 2, floats);
}
}  // namespace gpu
