#include "reduction.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : floats) {
    const uint32_t bytes = computed_bytes(type), sum_bytes = bytes_of_sum(type);
    add_reduction<"dvt.sum">(table, type, type, type, sum_bytes);
    add_reduction<"dvt.mean">(table, type, type, type, sum_bytes);
    add_reduction<"dvt.prod">(table, type, type, type, bytes);
  }
  for (const DLDataType type : integers) {
    add_reduction<"dvt.sum">(table, type, unsigned_of(type), type, bytes_of(type));
    add_reduction<"dvt.prod">(table, type, unsigned_of(type), type, bytes_of(type));
  }
}
}  // namespace gpu
