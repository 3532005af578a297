// Complex numbers, as they are stored and computed with.
#pragma once
#include "kernels/common/types.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
template <class T>
struct alignas(2 * sizeof(T)) complex {
  T real, imag;

  complex() = default;
  explicit __device__ complex(T r) : real(r), imag(0) {}
  __device__ complex(T r, T i) : real(r), imag(i) {}
  __device__ complex operator+(const complex& o) const { return {real + o.real, imag + o.imag}; }
};
}  // namespace gpu
#endif

#define GPU_COMPLEX(X) X(c64, gpu::complex<float>) X(c128, gpu::complex<double>)
