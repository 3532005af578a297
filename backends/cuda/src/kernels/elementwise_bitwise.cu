// Bits, on bool logic, and shifts. Where the sign does not matter, by size.
#include "kernels/common/elementwise.cuh"

namespace {
struct And {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return T(a & b);
  }
};
struct Or {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return T(a | b);
  }
};
struct Xor {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return T(a ^ b);
  }
};
// From the type's width on nothing is left but the sign; counts below 0 are none either.
struct ShiftLeft {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return uint64_t(b) < 8 * sizeof(T) ? T(uint64_t(a) << uint64_t(b)) : T(0);
  }
};
struct ShiftRight {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return uint64_t(b) < 8 * sizeof(T) ? T(a >> b) : T(gpu::is_negative(a) ? -1 : 0);
  }
};
}  // namespace

#define LOGIC(suffix, T)                         \
  GPU_BINARY(bitwise_and_##suffix, And, T, T, T) \
  GPU_BINARY(bitwise_or_##suffix, Or, T, T, T)   \
  GPU_BINARY(bitwise_xor_##suffix, Xor, T, T, T)
GPU_UNSIGNED(LOGIC)

#define SHIFT_LEFT(suffix, T) GPU_BINARY(bitwise_left_shift_##suffix, ShiftLeft, T, T, T)
GPU_UNSIGNED(SHIFT_LEFT)

#define SHIFT_RIGHT(suffix, T) GPU_BINARY(bitwise_right_shift_##suffix, ShiftRight, T, T, T)
GPU_INTEGERS(SHIFT_RIGHT)
