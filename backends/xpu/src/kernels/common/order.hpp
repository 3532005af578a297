// In which order values are sorted. Shared with the host.
#pragma once
#include <cstdint>

namespace gpu {
enum class Numbers : uint32_t { unsigned_integers, signed_integers, floats };
struct Order {
  Numbers numbers;
  uint32_t descending;
  uint64_t infinity;  // its bits, of floats
};
inline constexpr uint64_t sort_tile = 1024;  // elements that a work-group sorts at once
}  // namespace gpu
