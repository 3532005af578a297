#include "elementwise.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  add_elementwise<"dvt.sign">(table, 1, integers + floats);
  add_elementwise<"dvt.abs">(table, 1, {dvt::i8, dvt::i16, dvt::i32, dvt::i64});  // floats: one operation on bits
  add_elementwise<"dvt.copysign">(table, 2, floats);
}
}  // namespace gpu
