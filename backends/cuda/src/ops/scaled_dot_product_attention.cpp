#include "attention/call.hpp"
#include "gpu/dtypes.hpp"

namespace gpu {
void GPU_ROWS(dvt::KernelTable& table) {
  for (const auto op : {attention::Op::plain, attention::Op::with_logsumexp})
    for (const DLDataType type : floats) {
      attention::add_cudnn(table, op, type);
      attention::add_flash(table, op, type);
      attention::add_plain(table, op, type);
    }
  for (const DLDataType type : floats) attention::add_varlen(table, type);
}
}  // namespace gpu
