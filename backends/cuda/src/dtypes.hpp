// Data types by number and by the suffix of kernels' names.
#pragma once
#include "dovetail/types.hpp"

namespace gpu {
using namespace dvt::types;

// Of a sum of floats while it grows (kernels/common/sum.cuh).
inline uint32_t bytes_of_sum(DLDataType type) { return type.bits == 16 ? 4 : 2 * bytes_of(type); }
// Types whose kernels serve others too: bool is a small integer, and a sign may not matter.
inline DLDataType without_bool(DLDataType type) { return type.code == DVT_BOOL ? unsigned_of(type) : type; }
inline DLDataType without_sign(DLDataType type) { return is_float(type) ? type : unsigned_of(type); }
}  // namespace gpu
