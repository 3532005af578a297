#include "reduction.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : boolean + integers + floats) {
    const uint64_t sign = is_float(type) ? uint64_t{1} << (type.bits - 1) : 0;
    const auto find = [&](bool every) {
      return find_reduction("any", unsigned_of(type), 1, {.flip = every, .counts = ~sign});
    };
    add_reduction<"dvt.any">(table, type, dvt::boolean, find(false));
    add_reduction<"dvt.all">(table, type, dvt::boolean, find(true));
  }
}
}  // namespace gpu
