#include "reduction.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  const auto add = [&](DLDataType type, DLDataType kernel_type) {
    add_reduction<"dvt.any">(table, type, kernel_type, dvt::boolean, 1);
    add_reduction<"dvt.all">(table, type, kernel_type, dvt::boolean, 1);
  };
  for (const DLDataType type : boolean + integers) add(type, unsigned_of(type));
  for (const DLDataType type : floats) add(type, type);
}
}  // namespace gpu
