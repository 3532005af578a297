#include "attention/call.hpp"
#include "gpu/dtypes.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : floats) attention::add_grad(table, type);
}
}  // namespace gpu
