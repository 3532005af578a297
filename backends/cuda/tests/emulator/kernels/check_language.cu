// For the tests of the emulator: indices, numbers, atomics, parameters, and invalid operations.
#include "kernels/common/kernel.cuh"

KERNEL(64, check_indices)(uint32_t* y) {
  const uint32_t block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  y[block * 64 + thread] = (threadIdx.z * 100 + threadIdx.y * 10 + threadIdx.x) * 1000 +
                           (blockIdx.z * 100 + blockIdx.y * 10 + blockIdx.x);
}

KERNEL(256, check_integers)(const uint64_t* x, const uint64_t* y, uint64_t* out) {
  const uint64_t a = x[threadIdx.x], b = y[threadIdx.x];
  uint64_t* const o = out + 9 * threadIdx.x;
  o[0] = uint64_t(__clz(int(a))), o[1] = uint64_t(__clzll((long long)a)), o[2] = uint64_t(__popc(unsigned(a)));
  o[3] = uint64_t(__ffs(int(a))), o[4] = __umulhi(unsigned(a), unsigned(b)), o[5] = __umul64hi(a, b);
  o[6] = __brev(unsigned(a)), o[7] = __byte_perm(unsigned(a), unsigned(a >> 32), unsigned(b)), o[8] = __brevll(a);
}

KERNEL(256, check_atomics)(const int32_t* x, int32_t* y, float* sum) {
  const int32_t v = x[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&y[0], v);
  atomicMin(&y[1], v);
  atomicMax(&y[2], v);
  atomicOr(&y[3], 1 << (v & 15));
  atomicExch(&y[4], 7);
  for (int32_t old = y[5];;) {  // a maximum by compare-and-swap
    const int32_t seen = atomicCAS(&y[5], old, old < v ? v : old);
    if (seen == old) break;
    old = seen;
  }
  atomicAdd(sum, 0.5f);
}

struct CheckStruct {
  int64_t a;
  uint8_t b;
  float c[3];
};
KERNEL(32, check_parameters)(uint8_t small, CheckStruct s, double* y, uint16_t last) {
  y[0] = small, y[1] = double(s.a), y[2] = s.b, y[3] = s.c[2], y[4] = last;
}

KERNEL(256, check_add)(int32_t* x, int32_t n) { x[threadIdx.x] += n; }
KERNEL(256, check_scale)(int32_t* x, int32_t n) { x[threadIdx.x] *= n; }
KERNEL(256, check_add_other)(const int32_t* x, int32_t* y) { y[threadIdx.x] += x[threadIdx.x]; }

KERNEL(256, check_write_at)(int32_t* x, int64_t i) {
  if (threadIdx.x == 3) x[i] = 1;
}
KERNEL(32, check_divide)(int32_t* x) { x[threadIdx.x] /= x[threadIdx.x + 32]; }
