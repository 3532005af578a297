// One of two elements, by a condition; of any type.
#include "kernels/common/elementwise.cuh"

namespace {
struct Choose {
  template <class T>
  __device__ T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};
}  // namespace

#define WHERE(suffix, T) GPU_TERNARY(where_##suffix, Choose, T, bool, T, T)
GPU_SIZES(WHERE)
