// 0, 1, ... n - 1.
#include "kernels/common/types.hpp"

#define IOTA(suffix, T)                                                              \
  KERNEL(1, iota_##suffix)(T * out, uint64_t n) {                                    \
    gpu::for_each_item(n, [=](size_t i) { out[i] = dvt::convert<T>(uint64_t(i)); }); \
  }
DVT_NUMBERS(IOTA)
