// 0, 1, ... n - 1.
#include "kernels/common/portable.hpp"

#define IOTA(suffix, T)                                                                \
  GPU_KERNEL(1, iota_##suffix)(T * out, uint64_t n) {                                  \
    gpu::for_each_item(n, [=](uint64_t i) { out[i] = dvt::convert<T>(uint64_t(i)); }); \
  }
DVT_NUMBERS(IOTA)
