#include "reduction.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  constexpr uint32_t value_bytes = 16;  // a value and its index
  for (const DLDataType type : integers + floats) {
    add_reduction<"dvt.argmax">(table, type, type, dvt::i64, value_bytes);
    add_reduction<"dvt.argmin">(table, type, type, dvt::i64, value_bytes);
  }
}
}  // namespace gpu
