// Hopper's products of a warp group: wgmma.mma_async.m64nNk16. Four warps multiply 64 rows of A, from registers (a
// warp's 16 rows as FragmentA) or shared memory, by B in shared memory; each warp's results are FragmentC[1][N /
// 8]. They are asynchronous: between wgmma_begin and wgmma_wait no code may touch results, fragments of A or shared
// memory.
#pragma once
#include "kernels/common/mma.cuh"

namespace gpu {
// A matrix in shared memory, in rows of 128 bytes (64 elements) whose chunks of 16 bytes are exchanged as TMA's
// 128-byte swizzle does it; it begins at a multiple of 1024 bytes, or at chunks from there. PTX ISA, "Matrix
// descriptor".
struct MatrixDescriptor {
  uint64_t bits;

  // Rows of A, or columns of B, lie behind each other: K runs along them ("K-major").
  __device__ __forceinline__ static MatrixDescriptor along_k(SharedAddress begin) { return make(begin, 16, 1024); }
  // Rows run across K, in parts of 64 columns that are `part` bytes apart ("MN-major").
  __device__ __forceinline__ static MatrixDescriptor across_k(SharedAddress begin, uint32_t part) {
    return make(begin, part, 1024);
  }

 private:
  __device__ __forceinline__ static MatrixDescriptor make(SharedAddress begin, uint32_t leading, uint32_t stride) {
    constexpr uint64_t swizzle_128 = uint64_t{1} << 62;
    return {(begin & 0x3FFFF) >> 4 | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 | swizzle_128};
  }
};

#ifndef GPU_EMULATED
// Before the first product, after its operands have been written.
__device__ __forceinline__ void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Keeps the compiler from moving computations on the fragments across this point, and so across a wait.
template <int n>
__device__ __forceinline__ void settle(FragmentC (&c)[1][n]) {
#pragma unroll
  for (int i = 0; i < n; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) asm volatile("" : "+f"(c[0][i].x[j])::"memory");
}
// Waits for products but for those of the last `pending` groups; `c`: the results that are there then.
template <int pending, int n>
__device__ __forceinline__ void wgmma_wait(FragmentC (&c)[1][n]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
  settle(c);
}

#define GPU_C(i) "+f"(c[0][i].x[0]), "+f"(c[0][i].x[1]), "+f"(c[0][i].x[2]), "+f"(c[0][i].x[3])
#define GPU_C8(i) \
  GPU_C(i), GPU_C(i + 1), GPU_C(i + 2), GPU_C(i + 3), GPU_C(i + 4), GPU_C(i + 5), GPU_C(i + 6), GPU_C(i + 7)
#define GPU_RESULTS_64                                                                      \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23," \
  "%24,%25,%26,%27,%28,%29,%30,%31}"
#define GPU_RESULTS_128                                                                      \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"  \
  "%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45," \
  "%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"
// From shared memory, where the results before count only if `add`; from registers, where they do.
#define GPU_WGMMA_SHARED(type, n, a_at, b_at, add_at, ...)                                         \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #add_at                                          \
               ", 0;\n"                                                                            \
               "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " " GPU_RESULTS_##n \
               ", %" #a_at ", %" #b_at ", p, 1, 1, 0, 0; }"                                        \
               : __VA_ARGS__                                                                       \
               : "l"(a.bits), "l"(b.bits), "r"(int(add)))
#define GPU_WGMMA_REGISTERS(type, n, a0, a1, a2, a3, b_at, ...)                           \
  asm volatile(                                                                           \
      "{ .reg .pred p; setp.eq.b32 p, 0, 0;\n"                                            \
      "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " " GPU_RESULTS_##n \
      ", {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b_at ", p, 1, 1, 1; }"             \
      : __VA_ARGS__                                                                       \
      : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "l"(b.bits))

// c = a b, or c += a b with `add`; both lie along K.
template <class T>
__device__ __forceinline__ void wgmma(FragmentC (&c)[1][16], MatrixDescriptor a, MatrixDescriptor b, bool add) {
  if constexpr (std::is_same_v<T, half>) GPU_WGMMA_SHARED("f16", 128, 64, 65, 66, GPU_C8(0), GPU_C8(8));
  else GPU_WGMMA_SHARED("bf16", 128, 64, 65, 66, GPU_C8(0), GPU_C8(8));
}
// c += a b, where the rows of b run across K.
template <class T>
__device__ __forceinline__ void wgmma(FragmentC (&c)[1][8], const FragmentA& a, MatrixDescriptor b) {
  if constexpr (std::is_same_v<T, half>) GPU_WGMMA_REGISTERS("f16", 64, 32, 33, 34, 35, 36, GPU_C8(0));
  else GPU_WGMMA_REGISTERS("bf16", 64, 32, 33, 34, 35, 36, GPU_C8(0));
}
template <class T>
__device__ __forceinline__ void wgmma(FragmentC (&c)[1][16], const FragmentA& a, MatrixDescriptor b) {
  if constexpr (std::is_same_v<T, half>) GPU_WGMMA_REGISTERS("f16", 128, 64, 65, 66, 67, 68, GPU_C8(0), GPU_C8(8));
  else GPU_WGMMA_REGISTERS("bf16", 128, 64, 65, 66, 67, 68, GPU_C8(0), GPU_C8(8));
}
#undef GPU_WGMMA_REGISTERS
#undef GPU_WGMMA_SHARED
#undef GPU_RESULTS_128
#undef GPU_RESULTS_64
#undef GPU_C8
#undef GPU_C

// More registers for each thread of the calling warp group, or fewer.
template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void leave_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

// Barriers of the block, 1 to 15, that so many threads reach: `sync` waits for all of them, `arrive` does not.
__device__ __forceinline__ void named_barrier_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_barrier_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
#else
}  // namespace gpu
#include "warp_groups.hpp"
namespace gpu {
#endif
}  // namespace gpu
