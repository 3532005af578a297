// Element types.
#pragma once
#include "dovetail/floats.hpp"
#include "kernels/common/kernel.cuh"
#include "kernels/common/pack.hpp"

#if !defined(GPU_LIST_KERNELS)
namespace gpu {
using dvt::Compute;
using dvt::half;
using dvt::is_narrow;
using dvt::is_negative;
using bf16 = dvt::bfloat16;
using f8e4m3fn = dvt::float8_e4m3fn;
using f8e5m2 = dvt::float8_e5m2;

// Contiguous elements that are read or written at once.
template <class T, int n>
struct alignas(sizeof(T) * n) Pack {
  T at[n];
};
}  // namespace gpu
#endif
