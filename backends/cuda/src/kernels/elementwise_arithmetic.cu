// Sums, differences, products, quotients of floats; the larger or smaller of two, and what lies between two. Those
// of unsigned integers serve signed ones where the bits are the same.
#include "kernels/common/elementwise.cuh"

namespace {
// Integers wrap: they are counted in 64 bits without a sign, of which the lower ones stay.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;

struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return T(Wide<T>(a) + Wide<T>(b));
  }
};
struct Subtract {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return T(Wide<T>(a) - Wide<T>(b));
  }
};
struct Multiply {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return T(Wide<T>(a) * Wide<T>(b));
  }
};
struct Divide {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a / b;
  }
};
struct Maximum {  // NaN wins
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};
struct Clip {
  template <class T>
  __device__ T operator()(T x, T least, T most) const {
    return Minimum()(Maximum()(x, least), most);
  }
};
}  // namespace

#define ARITHMETIC(suffix, T)                      \
  GPU_BINARY(add_##suffix, Add, T, T, T)           \
  GPU_BINARY(subtract_##suffix, Subtract, T, T, T) \
  GPU_BINARY(multiply_##suffix, Multiply, T, T, T)
GPU_UNSIGNED(ARITHMETIC)
GPU_FLOATS(ARITHMETIC)

#define DIVISION(suffix, T) GPU_BINARY(divide_##suffix, Divide, T, T, T)
GPU_FLOATS(DIVISION)

#define EXTREMA(suffix, T)                       \
  GPU_BINARY(maximum_##suffix, Maximum, T, T, T) \
  GPU_BINARY(minimum_##suffix, Minimum, T, T, T)
GPU_NUMBERS(EXTREMA)

#define CLIP(suffix, T) GPU_TERNARY(clip_##suffix, Clip, T, T, T, T)
GPU_NUMBERS(CLIP)
