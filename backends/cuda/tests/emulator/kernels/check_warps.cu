// For the tests of the emulator: correct and wrong uses of warp operations.
#include "kernels/common/kernel.cuh"

// Each lane's result of each kind of shuffle and vote: 12 numbers.
KERNEL(64, check_shuffles)(const int32_t* x, int32_t* y) {
  const int32_t v = x[threadIdx.x];
  int32_t* const out = y + 12 * threadIdx.x;
  out[0] = __shfl_sync(~0u, v, 5);
  out[1] = __shfl_sync(~0u, v, 5, 8);
  out[2] = __shfl_up_sync(~0u, v, 3);
  out[3] = __shfl_up_sync(~0u, v, 3, 8);
  out[4] = __shfl_down_sync(~0u, v, 3);
  out[5] = __shfl_down_sync(~0u, v, 3, 8);
  out[6] = __shfl_xor_sync(~0u, v, 9);
  out[7] = __shfl_xor_sync(~0u, v, 9, 8);
  out[8] = int32_t(__ballot_sync(~0u, v % 3 == 0));
  out[9] = __any_sync(~0u, v == 7);
  out[10] = __all_sync(~0u, v >= 32);
  out[11] = int32_t(__shfl_xor_sync(~0u, int64_t{v} << 32, 1) >> 32);
}

// The two halves of each warp diverge, each with its own mask.
KERNEL(64, check_halves)(const int32_t* x, int32_t* y) {
  const int32_t v = x[threadIdx.x];
  if (threadIdx.x % 32 < 16) {
    y[threadIdx.x] = __shfl_xor_sync(0x0000ffff, v, 1);
  } else {
    __syncwarp(0xffff0000);
    y[threadIdx.x] = __shfl_sync(0xffff0000, v, 31);
  }
}

// A vote with a full mask does not wait for lanes that have returned.
KERNEL(32, check_returned_lanes)(int32_t* y) {
  if (threadIdx.x >= 20) return;
  y[threadIdx.x] = int32_t(__ballot_sync(~0u, true));
}

// An operation that CUDA does not have: the outer product's trace. Lane i gives a and b, and gets a_i * sum of b.
KERNEL(32, check_collective)(const int32_t* a, const int32_t* b, int32_t* y) {
  struct Operands {
    int32_t a, b;
  };
  const Operands mine{a[threadIdx.x], b[threadIdx.x]};
  y[threadIdx.x] = emulator::warp_collective<int32_t>(
      "outer", ~0u, mine, [](const emulator::WarpLanes<Operands, int32_t>& lanes) {
        int32_t sum = 0;
        lanes.for_each([&](uint32_t lane) { sum += lanes.operand(lane).b; });
        lanes.for_each([&](uint32_t lane) { lanes.result(lane) = lanes.operand(lane).a * sum; });
      });
}

KERNEL(32, check_shuffle_from_outside)(int32_t* y) {
  if (threadIdx.x < 16) y[threadIdx.x] = __shfl_sync(0x0000ffff, int32_t(threadIdx.x), 20);
}

KERNEL(32, check_masks_that_differ)() { __syncwarp(threadIdx.x < 16 ? 0xffffffff : 0xffff0000); }

KERNEL(32, check_mask_without_itself)() { __syncwarp(0x7fffffff); }

KERNEL(32, check_different_operations)(int32_t* y) {
  y[threadIdx.x] = threadIdx.x % 2 ? __shfl_xor_sync(~0u, 1, 1) : int32_t(__ballot_sync(~0u, true));
}

// Mistakes the lanes of the same branch for the whole warp.
KERNEL(32, check_active_mask)(int32_t* y) {
  const uint32_t mask = __activemask();
  if (threadIdx.x % 32 == uint32_t(__ffs(int(mask)) - 1)) atomicAdd(y, __popc(mask));
}
