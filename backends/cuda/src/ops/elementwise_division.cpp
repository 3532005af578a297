#include "elementwise.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.quotient">(table, 2, integers);
  add_elementwise<"dvt.floor_divide">(table, 2, integers + floats);
  add_elementwise<"dvt.remainder">(table, 2, integers + floats);
}
}  // namespace gpu
