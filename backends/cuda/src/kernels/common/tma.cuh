// Hopper's bulk copies of tiles (TMA), and the barriers in shared memory that signal their end.
#pragma once
#include "kernels/common/shared_address.cuh"
#include "kernels/common/tensor_map.hpp"

namespace gpu {
inline constexpr int barrier_bytes = 8;

#ifndef GPU_EMULATED
// A barrier that flips its phase, from 0, each time that so many threads have arrived and all announced bytes too.
__device__ __forceinline__ void barrier_init(SharedAddress barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Makes barriers known to TMA; before anybody waits for one, the threads of the block meet.
__device__ __forceinline__ void barrier_init_done() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_arrive(SharedAddress barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Arrives, and announces bytes that copies will bring.
__device__ __forceinline__ void barrier_arrive_expecting(SharedAddress barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Waits until the phase is over.
__device__ __forceinline__ void barrier_wait(SharedAddress barrier, uint32_t phase) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra again;\n"
      "}" ::"r"(barrier),
      "r"(phase)
      : "memory");
}

// Begins to copy the map's box from (column, row, head, batch) on, zeros where there are no elements.
__device__ __forceinline__ void copy_tile(SharedAddress to, const TensorMap& map, SharedAddress barrier, int column,
                                          int row, int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(batch)
      : "memory");
}
#else
}  // namespace gpu
#include "tile_copies.hpp"
namespace gpu {
#endif
}  // namespace gpu
