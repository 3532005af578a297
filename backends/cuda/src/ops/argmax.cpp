#include "reduction.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  constexpr uint32_t value_bytes = 16;  // a value and its index
  for (const DLDataType type : integers + floats) {
    const auto find = [&](bool least) {
      return find_reduction("argmax", without_sign(type), value_bytes, in_order(type, least));
    };
    add_reduction<"dvt.argmax">(table, type, dvt::i64, find(false));
    add_reduction<"dvt.argmin">(table, type, dvt::i64, find(true));
  }
}
}  // namespace gpu
