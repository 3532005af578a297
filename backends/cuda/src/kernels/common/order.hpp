// By how much at once values are sorted. Shared with the host.
#pragma once
#include "gpu/kernels/shared/order.hpp"

namespace gpu {
inline constexpr int digit_bits = 8, digits = 1 << digit_bits;  // a key is sorted by one digit at a time
inline constexpr int sort_threads = digits;                     // of a block: each has a digit
// The number of elements, of so many bytes, that a block sorts at once.
constexpr int sort_items(int bytes) { return bytes == 8 ? 6 : 12; }  // of a thread: more do not fit its registers
constexpr int sort_tile(int bytes) { return sort_threads * sort_items(bytes); }
}  // namespace gpu
