// Powers; exponentials and logarithms to other bases than e; lengths.
#include "kernels/common/elementwise.cuh"
#include "kernels/common/power.cuh"

namespace {
// By repeated squaring, wrapping. A negative exponent: 1 / x^|y| truncated, and 0 where x is 0.
template <class T>
__device__ T integer_power(T x, T y) {
  if (gpu::is_negative(y)) return x == 1 ? T(1) : x == T(-1) ? T(y & 1 ? -1 : 1) : T(0);
  std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t> result = 1, base = x;
  for (auto n = std::make_unsigned_t<T>(y); n; n = n >> 1, base *= base)
    if (n & 1) result *= base;
  return T(result);
}
struct Pow : gpu::Long {
  template <class T>
  __device__ T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) return integer_power(x, y);
    else return gpu::math::pow(x, y);
  }
};
GPU_LONG_FUNCTION(Exp2, gpu::math::exp2);
GPU_LONG_FUNCTION(Log2, gpu::math::log2);
GPU_LONG_FUNCTION(Log10, gpu::math::log10);
GPU_LONG_FUNCTION(Hypot, gpu::math::hypot);
GPU_LONG_FUNCTION(Logaddexp, gpu::math::logaddexp);
}  // namespace

#define POWER(suffix, T) GPU_BINARY(pow_##suffix, Pow, T, T, T)
GPU_NUMBERS(POWER)

#define POWER_FLOATS(suffix, T)              \
  GPU_UNARY(exp2_##suffix, Exp2, T, T)       \
  GPU_UNARY(log2_##suffix, Log2, T, T)       \
  GPU_UNARY(log10_##suffix, Log10, T, T)     \
  GPU_BINARY(hypot_##suffix, Hypot, T, T, T) \
  GPU_BINARY(logaddexp_##suffix, Logaddexp, T, T, T)
GPU_FLOATS(POWER_FLOATS)
