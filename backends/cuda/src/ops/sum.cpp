#include "reduction.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : floats) {
    const uint32_t sum_bytes = bytes_of_sum(type);
    add_reduction<"dvt.sum">(table, type, type, find_reduction("sum", type, sum_bytes));
    add_reduction<"dvt.mean">(table, type, type, find_reduction("sum", type, sum_bytes, {.mean = 1}));
    add_reduction<"dvt.prod">(table, type, type, find_reduction("prod", type, computed_bytes(type)));
  }
  for (const DLDataType type : integers) {
    const DLDataType kernel_type = unsigned_of(type);
    add_reduction<"dvt.sum">(table, type, type, find_reduction("sum", kernel_type, bytes_of(type)));
    add_reduction<"dvt.prod">(table, type, type, find_reduction("prod", kernel_type, bytes_of(type)));
  }
}
}  // namespace gpu
