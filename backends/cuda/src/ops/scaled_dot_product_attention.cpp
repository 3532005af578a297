#include "attention/engines.hpp"
#include "dtypes.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : floats) {
    attention::add_cudnn(table, type);
    attention::add_flash(table, type);
    attention::add_plain(table, type);
  }
}
}  // namespace gpu
