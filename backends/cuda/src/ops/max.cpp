#include "reduction.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : boolean + integers + floats) {
    const auto find = [&](bool least) {
      return find_reduction("max", without_sign(type), computed_bytes(type), in_order(type, least));
    };
    add_reduction<"dvt.max">(table, type, type, find(false));
    add_reduction<"dvt.min">(table, type, type, find(true));
  }
}
}  // namespace gpu
