// One value everywhere; of any type.
#include "kernels/common/elementwise.hpp"

#define FULL(suffix, T)                                                  \
  GPU_KERNEL(1, full_##suffix)(T * out, uint64_t n, gpu::Scalar value) { \
    const T x = gpu::value_of<T>(value);                                 \
    gpu::for_each_item(n, [=](uint64_t i) { out[i] = x; });              \
  }
DVT_SIZES(FULL)
