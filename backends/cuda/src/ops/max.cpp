#include "reduction.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : boolean + integers + floats) {
    add_reduction<"dvt.max">(table, type, type, type, computed_bytes(type));
    add_reduction<"dvt.min">(table, type, type, type, computed_bytes(type));
  }
}
}  // namespace gpu
