// In which order values are sorted. Shared with the host.
#pragma once
#include "dovetail/portable.hpp"

namespace gpu {
enum class Numbers : uint32_t { unsigned_integers, signed_integers, floats };
struct Order {
  Numbers numbers;
  uint32_t descending;
  uint64_t infinity;  // its bits, of floats
};

// An unsigned integer in the wanted order for the bits of an element.
template <class U>
DVT_FN U make_key(U bits, const Order& order) {
  constexpr U sign = U(U(1) << (8 * sizeof(U) - 1));
  if (order.numbers == Numbers::floats) {
    const U magnitude = U(bits & U(~sign));
    if (magnitude > U(order.infinity)) return U(~U(0));  // no other float has this key, in either order
    bits = magnitude == 0 ? sign : bits & sign ? U(~bits) : U(bits | sign);
  } else if (order.numbers == Numbers::signed_integers) {
    bits = U(bits ^ sign);
  }
  return order.descending ? U(~bits) : bits;
}
}  // namespace gpu
