#include "elementwise.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.exp">(table, 1, floats);
  add_elementwise<"dvt.expm1">(table, 1, floats);
  add_elementwise<"dvt.log">(table, 1, floats);
  add_elementwise<"dvt.log1p">(table, 1, floats);
  add_elementwise<"dvt.tanh">(table, 1, floats);
  add_elementwise<"dvt.erf">(table, 1, floats);
  add_elementwise<"dvt.erfc">(table, 1, floats);
  add_elementwise<"dvt.sqrt">(table, 1, floats);
  add_elementwise<"dvt.rsqrt">(table, 1, floats);
}
}  // namespace gpu
