// What the kernels' headers take of the C++ standard library, in C++ for OpenCL: found under the names of the
// library's headers.
#pragma once
#include "gpu/groups/standard.hpp"

namespace std {
inline void memcpy(void* to, const void* from, size_t n) { __builtin_memcpy(to, from, n); }
}  // namespace std

// C's names for float32: OpenCL has one name for all types.
inline float fabsf(float x) { return fabs(x); }
inline float sqrtf(float x) { return sqrt(x); }
inline float floorf(float x) { return floor(x); }
inline float ceilf(float x) { return ceil(x); }
inline float truncf(float x) { return trunc(x); }
inline float rintf(float x) { return rint(x); }
inline float fmaf(float x, float y, float z) { return fma(x, y, z); }
inline float copysignf(float x, float y) { return copysign(x, y); }
