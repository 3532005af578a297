// Data types by number and by the suffix of kernel names. Kernels of one type may serve others that have the same
// bits.
#pragma once
#include "dovetail/types.hpp"

namespace gpu {
using namespace dvt::types;

// Bool is a small integer.
inline DLDataType without_bool(DLDataType type) { return type.code == DVT_BOOL ? unsigned_of(type) : type; }
// Wrapping integer arithmetic gives the same bits in signed and unsigned types.
inline DLDataType without_sign(DLDataType type) { return is_float(type) ? type : unsigned_of(type); }
}  // namespace gpu
