// The axes of two operands that are iterated together. Shared with the host. Each backend defines Divisor64, a size
// that kernels divide by, and its quotient() in kernels/common/divisor.hpp.
#pragma once
#include <cstdint>

#include "dovetail/portable.hpp"
#include "kernels/common/divisor.hpp"

namespace gpu {
inline constexpr int most_axes = 16;

template <class T>
constexpr uint64_t value_of(const T& divisor) {
  if constexpr (requires { divisor.value; }) return divisor.value;
  else return divisor;
}

struct Axis {
  Divisor64 size;
  int64_t stride[2];  // of either operand, in elements
};

// All of a tensor, row-major.
struct IterationSpace {
  uint32_t axes;
  Axis axis[most_axes];
};

struct Place {
  int64_t at[2] = {};  // in either operand
};

// The place of element i in row-major order over the axes [begin, end).
DVT_FN Place locate(const Axis* axis, uint32_t begin, uint32_t end, uint64_t i) {
  Place place;
  for (uint32_t a = end; a-- > begin;) {
    const uint64_t rest = a == begin ? 0 : quotient(i, axis[a].size), here = i - rest * value_of(axis[a].size);
    place.at[0] += int64_t(here) * axis[a].stride[0];
    place.at[1] += int64_t(here) * axis[a].stride[1];
    i = rest;
  }
  return place;
}
}  // namespace gpu
