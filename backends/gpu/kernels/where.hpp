// One of two elements by a condition, for elements of any type.
#include "kernels/common/elementwise.hpp"

#define WHERE(suffix, T) GPU_TERNARY(where_##suffix, fn::Where, T, bool, T, T)
DVT_SIZES(WHERE)
