#include "elementwise.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.bitwise_and">(table, 2, boolean + integers, nullptr, without_sign);
  add_elementwise<"dvt.bitwise_or">(table, 2, boolean + integers, nullptr, without_sign);
  add_elementwise<"dvt.bitwise_xor">(table, 2, boolean + integers, nullptr, without_sign);
  add_elementwise<"dvt.bitwise_left_shift">(table, 2, integers, nullptr, without_sign);
  add_elementwise<"dvt.bitwise_right_shift">(table, 2, integers);
}
}  // namespace gpu
