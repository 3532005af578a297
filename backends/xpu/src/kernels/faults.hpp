// Passes the fault of a graph's kernels to the stream that replays it.
#include "kernels/common/fault.hpp"
#include "kernels/common/kernel.hpp"

KERNEL(1, move_fault)(gpu::Fault* from, gpu::Fault* to) {
  if (from->raised && !to->raised) {
    const uint32_t round = to->round;
    *to = *from, to->round = round;
  }
  from->raised = 0;
}
