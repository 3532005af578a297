// Rounding to integers; neighbours of floats.
#include "kernels/common/elementwise.cuh"
#include "kernels/common/math.cuh"

namespace {
struct Floor {
  template <class T>
  __device__ T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) return x;
    else return gpu::math::floor(x);
  }
};
GPU_FUNCTION(Ceil, gpu::math::ceil);
GPU_FUNCTION(Trunc, gpu::math::trunc);
GPU_FUNCTION(Round, gpu::math::round);
struct Nextafter {  // zero is reached from its own side
  template <class T>
  __device__ T operator()(T x, T y) const {
    using Bits = gpu::math::Bits<T>;
    if (x == y || x != x || y != y) return x == y ? y : x + y;
    if (x == 0) return gpu::math::copysign(gpu::bit_cast<T>(Bits(1)), y);
    const bool outwards = (x < y) == (x > 0);
    return gpu::bit_cast<T>(Bits(gpu::math::bits(x) + (outwards ? Bits(1) : Bits(-1))));
  }
};
}  // namespace

#define ROUNDING(suffix, T) GPU_UNARY(floor_##suffix, Floor, T, T)
GPU_NUMBERS(ROUNDING)

#define ROUNDING_FLOATS(suffix, T)       \
  GPU_UNARY(ceil_##suffix, Ceil, T, T)   \
  GPU_UNARY(trunc_##suffix, Trunc, T, T) \
  GPU_UNARY(round_##suffix, Round, T, T)
GPU_FLOATS(ROUNDING_FLOATS)

GPU_BINARY(nextafter_f32, Nextafter, float, float, float)
GPU_BINARY(nextafter_f64, Nextafter, double, double, double)
