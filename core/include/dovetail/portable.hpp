// dovetail/portable.hpp - the macros by which one header serves host code in C++17, CUDA (nvcc or clang) and SYCL.
//
//   DVT_FN float twice(float x) { return 2 * x; }  // callable from kernels and from the host
//
// Kernels are expected to be compiled without contraction of a product and a sum (-ffp-contract=off, -fmad=false):
// the functions of these headers write fma where they want one rounding.
#ifndef DOVETAIL_PORTABLE_HPP
#define DOVETAIL_PORTABLE_HPP

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(SYCL_LANGUAGE_VERSION)
#include <sycl/sycl.hpp>
#endif

#ifndef DVT_CODE_NAMESPACE  // see backend.hpp
#define DVT_CODE_NAMESPACE common
#endif

// DVT_FN begins a function, DVT_TABLE an array of constants that such functions read by an index.
#if defined(__CUDACC__)
#define DVT_FN __host__ __device__ __forceinline__
#if defined(__CUDA_ARCH__)
#define DVT_TABLE __constant__ const
#else
#define DVT_TABLE static const
#endif
#elif defined(__GNUC__) && !defined(SYCL_LANGUAGE_VERSION)
#define DVT_FN inline __attribute__((always_inline))
#define DVT_TABLE inline constexpr
#else
#define DVT_FN inline
#define DVT_TABLE inline constexpr
#endif

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
template <class To, class From>
DVT_FN To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// The upper 64 bits of a product.
DVT_FN uint64_t high_product(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#elif defined(SYCL_LANGUAGE_VERSION)
  return sycl::mul_hi(a, b);
#elif defined(__SIZEOF_INT128__)
  __extension__ using Wide = unsigned __int128;
  return uint64_t(Wide{a} * b >> 64);
#else
  const uint64_t low = (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF), first = (a >> 32) * (b & 0xFFFFFFFF) + (low >> 32);
  const uint64_t second = (a & 0xFFFFFFFF) * (b >> 32) + (first & 0xFFFFFFFF);
  return (a >> 32) * (b >> 32) + (first >> 32) + (second >> 32);
#endif
}

// Zero bits before the first one; 64 for 0.
DVT_FN int leading_zeros(uint64_t a) {
#if defined(__CUDA_ARCH__)
  return __clzll(int64_t(a));
#elif defined(SYCL_LANGUAGE_VERSION)
  return int(sycl::clz(a));
#else
  return a ? __builtin_clzll(a) : 64;
#endif
}

#if defined(SYCL_LANGUAGE_VERSION)
using half = sycl::half;  // its conversions are instructions
#endif

// The operations that IEEE 754 fixes.
namespace math {
// Each has one name for both types: the C library's names without f are double's and would widen a float.
#if defined(SYCL_LANGUAGE_VERSION)
#define DVT_SINGLE(function) sycl::function
#define DVT_DOUBLE(function) sycl::function
#else
#define DVT_SINGLE(function) ::function##f
#define DVT_DOUBLE(function) ::function
#endif
#define DVT_OPERATION(name, function)                            \
  DVT_FN float name(float x) { return DVT_SINGLE(function)(x); } \
  DVT_FN double name(double x) { return DVT_DOUBLE(function)(x); }
DVT_OPERATION(abs, fabs)
DVT_OPERATION(sqrt, sqrt)
DVT_OPERATION(floor, floor)
DVT_OPERATION(ceil, ceil)
DVT_OPERATION(trunc, trunc)
DVT_OPERATION(round, rint)  // ties to even
DVT_FN float fma(float x, float y, float z) { return DVT_SINGLE(fma)(x, y, z); }
DVT_FN double fma(double x, double y, double z) { return DVT_DOUBLE(fma)(x, y, z); }
DVT_FN float copysign(float x, float y) { return DVT_SINGLE(copysign)(x, y); }
DVT_FN double copysign(double x, double y) { return DVT_DOUBLE(copysign)(x, y); }
#undef DVT_OPERATION
#undef DVT_SINGLE
#undef DVT_DOUBLE
}  // namespace math
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_PORTABLE_HPP
