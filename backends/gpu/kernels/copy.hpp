// Copies elements from any strides to any.
#include "kernels/common/elementwise.hpp"

#define COPY(suffix, T) GPU_UNARY(copy_##suffix, fn::Identity, T, T)
DVT_SIZES(COPY)
