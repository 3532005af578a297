// For the tests of the emulator: each instruction of tensor cores alone. Fragments are in each thread's own
// layout.
#include "kernels/common/wgmma.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace {
using namespace gpu;

// The content of `memory`, in shared memory; its address.
__device__ SharedAddress share(const uint4* memory, uint32_t chunks) {
  DYNAMIC_SHARED(uint4, shared);
  for (uint32_t i = threadIdx.x; i < chunks; i += blockDim.x) shared[i] = memory[i];
  __syncthreads();
  return shared_address(shared);
}

template <class T>
__device__ void product(const FragmentA* a, const FragmentB* b, FragmentC* c) {
  mma<T>(c[threadIdx.x], a[threadIdx.x], b[threadIdx.x]);
}

// 64 x 64 of A, then 128 x 64 of B, both along K.
template <class T>
__device__ void shared_product(const uint4* memory, FragmentC* results, uint32_t add) {
  const SharedAddress a = share(memory, (64 + 128) * 8), b = a + 64 * 128;
  FragmentC(&c)[1][16] = reinterpret_cast<FragmentC(*)[1][16]>(results)[threadIdx.x];
  wgmma_begin();
  for (uint32_t k = 0; k < 4; ++k)
    wgmma<T>(c, MatrixDescriptor::along_k(a + 32 * k), MatrixDescriptor::along_k(b + 32 * k), add || k);
  wgmma_commit();
  wgmma_wait<0>(c);
}

// A in registers, and 16 x 8 n of B across K, in blocks of 64 columns.
template <class T, int n>
__device__ void register_product(const uint4* memory, const FragmentA* a, FragmentC* results) {
  constexpr uint32_t part = 16 * 128;
  const SharedAddress b = share(memory, part / 16 * n / 8);
  FragmentC(&c)[1][n] = reinterpret_cast<FragmentC(*)[1][n]>(results)[threadIdx.x];
  wgmma_begin();
  wgmma<T>(c, a[threadIdx.x], MatrixDescriptor::across_k(b, part));
  wgmma_commit();
  wgmma_wait<0>(c);
}
}  // namespace
#endif

KERNEL(32, check_ldmatrix)(const uint4* memory, const uint32_t* offset, uint32_t* x, uint32_t transposed) {
  const SharedAddress row = share(memory, 32) + offset[threadIdx.x];
  uint32_t (&to)[4] = reinterpret_cast<uint32_t (*)[4]>(x)[threadIdx.x];
  if (transposed) gpu::ldmatrix<true>(to, row);
  else gpu::ldmatrix(to, row);
}

#define CHECK_PRODUCTS(type, T)                                                                            \
  KERNEL(32, check_mma_##type)(const gpu::FragmentA* a, const gpu::FragmentB* b, gpu::FragmentC* c) {      \
    product<T>(a, b, c);                                                                                   \
  }                                                                                                        \
  KERNEL(128, check_wgmma_##type)(const uint4* memory, gpu::FragmentC* c, uint32_t add) {                  \
    shared_product<T>(memory, c, add);                                                                     \
  }                                                                                                        \
  KERNEL(128, check_wgmma_##type##_64)(const uint4* memory, const gpu::FragmentA* a, gpu::FragmentC* c) {  \
    register_product<T, 8>(memory, a, c);                                                                  \
  }                                                                                                        \
  KERNEL(128, check_wgmma_##type##_128)(const uint4* memory, const gpu::FragmentA* a, gpu::FragmentC* c) { \
    register_product<T, 16>(memory, a, c);                                                                 \
  }
CHECK_PRODUCTS(f16, gpu::half)
CHECK_PRODUCTS(bf16, gpu::bf16)
