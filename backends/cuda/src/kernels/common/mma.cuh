// Tensor cores of sm_80 and newer, and what feeds them: mma.sync.m16n8k16, ldmatrix, cp.async. Fragments lie as the
// PTX ISA documents (9.7.14, "Matrix fragments for mma.m16n8k16"): lane 4 g + t holds
//   A  x[0] (g, 2t) x[1] (g + 8, 2t) x[2] (g, 2t + 8) x[3] (g + 8, 2t + 8)   rows and columns, each with the next
//   column B  x[0] (2t, g) x[1] (2t + 8, g)                                         each with the next row C  x[0]
//   (g, 2t) x[1] (g, 2t + 1) x[2] (g + 8, 2t) x[3] (g + 8, 2t + 1)
#pragma once
#include "kernels/common/kernel.cuh"
#include "kernels/common/shared_address.cuh"
#include "kernels/common/types.cuh"

namespace gpu {
struct FragmentA {
  uint32_t x[4];
};
struct FragmentB {
  uint32_t x[2];
};
struct FragmentC {
  float x[4];
};

#ifndef GPU_EMULATED
// c += a b of 16-bit floats.
template <class T>
__device__ __forceinline__ void mma(FragmentC& c, const FragmentA& a, const FragmentB& b) {
  if constexpr (std::is_same_v<T, half>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])
        : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b.x[0]), "r"(b.x[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])
        : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b.x[0]), "r"(b.x[1]));
}

// Four matrices of 8 rows of 16 bytes, whose addresses the lanes 8 i to 8 i + 7 give: lane 4 g + t gets row g's
// elements 2t and 2t + 1 of matrix i as x[i], or with `transposed` elements g of rows 2t and 2t + 1.
template <bool transposed = false>
__device__ __forceinline__ void ldmatrix(uint32_t (&x)[4], SharedAddress row) {
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(row)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(row)
                 : "memory");
}

// 16 bytes on their way to shared memory; zeros, and nothing is read, unless `valid`.
__device__ __forceinline__ void copy_async(SharedAddress to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0)
               : "memory");
}
// Ends a group of this thread's copies.
__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for this thread's copies but for those of the last `pending` groups.
template <int pending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Two floats rounded to 16 bits each, `low` in the lower half.
template <class T>
__device__ __forceinline__ uint32_t pack(float low, float high) {
  uint32_t bits;
  if constexpr (std::is_same_v<T, half>) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  else asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

// 2**x by the special function unit, to 2 ulp of float32 and subnormals flushed: a polynomial would cost the cores
// that the tensor cores feed on.
__device__ __forceinline__ float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float log2_approximate(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// The same number, of which the compiler knows nothing: what is computed from it is computed again in each round of
// a loop, instead of being kept in registers.
__device__ __forceinline__ int opaque(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
__device__ __forceinline__ int64_t opaque(int64_t x) {
  asm volatile("" : "+l"(x));
  return x;
}

// A word, and 16 bytes, of shared memory.
__device__ __forceinline__ void store_shared(SharedAddress to, uint32_t x) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}
__device__ __forceinline__ uint4 load_shared(SharedAddress from) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(from)
               : "memory");
  return x;
}
#else
}  // namespace gpu
#include "tensor_cores.hpp"
namespace gpu {
#endif

// Two adjacent results of mma as an operand of the next.
template <class T>
__device__ __forceinline__ FragmentA operand(const FragmentC& left, const FragmentC& right) {
  return {{pack<T>(left.x[0], left.x[1]), pack<T>(left.x[2], left.x[3]), pack<T>(right.x[0], right.x[1]),
           pack<T>(right.x[2], right.x[3])}};
}
}  // namespace gpu
