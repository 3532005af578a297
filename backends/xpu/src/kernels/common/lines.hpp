// Where elements of lines lie, and what the items of a work-group found together.
#pragma once
#include "kernels/common/axes.hpp"
#include "kernels/common/kernel.hpp"

namespace xpu {
struct Place {
  int64_t at[2] = {};  // in either operand
};

// GPUs divide 64 bits slowly.
inline uint64_t quotient(uint64_t a, uint64_t b) { return (a | b) >> 32 ? a / b : uint32_t(a) / uint32_t(b); }

// Of element i in a row-major walk over the axes [begin, end).
inline Place locate(const Axis* axis, uint32_t begin, uint32_t end, uint64_t i) {
  Place place;
  for (uint32_t a = end; a-- > begin;) {
    const uint64_t rest = a == begin ? 0 : quotient(i, axis[a].size), here = i - rest * axis[a].size;
    place.at[0] += int64_t(here) * axis[a].stride[0];
    place.at[1] += int64_t(here) * axis[a].stride[1];
    i = rest;
  }
  return place;
}
inline Place line(const Lines& how, uint64_t i) { return locate(how.axis, 0, how.kept, i); }
// Where element i of a line lies in operand 0, from the line's begin.
inline int64_t along(const Lines& how, uint64_t i) {
  if (how.along == 1) return int64_t(i) * how.axis[how.kept].stride[0];
  return locate(how.axis, how.kept, how.kept + how.along, i).at[0];
}

// Part p of a line is its elements [begin, end).
struct Part {
  uint64_t begin, end;
  Part(const Lines& how, uint64_t p) {
    const uint64_t length = quotient(how.size + how.parts - 1, how.parts);
    begin = sycl::min(p * length, how.size), end = sycl::min(begin + length, how.size);
  }
};

// The items of a group, of which there are 16 to 256, a multiple of 16.
struct Group {
  sycl::nd_item<1> item = sycl::ext::oneapi::this_work_item::get_nd_item<1>();
  uint32_t lane = uint32_t(item.get_local_id(0)), width = uint32_t(item.get_local_range(0));

  void barrier() const { sycl::group_barrier(item.get_group()); }
};
inline constexpr int most_lanes = 256;

// The lanes' values joined by R::join, in an order that depends on the width alone; told to every lane.
template <class R, class Value>
Value join_group(const Group& group, Value value) {
  constexpr uint32_t few = 16;
  static sycl::ext::oneapi::experimental::work_group_static<Value[most_lanes]> memory;
  Value(&slots)[most_lanes] = memory;
  slots[group.lane] = value;
  group.barrier();
  if (group.lane < few) {
    for (uint32_t k = group.lane + few; k < group.width; k += few) value = R::join(value, slots[k]);
    slots[group.lane] = value;
  }
  group.barrier();
  if (group.lane == 0) {
    for (uint32_t k = 1; k < few; ++k) value = R::join(value, slots[k]);
    slots[0] = value;
  }
  group.barrier();
  value = slots[0];
  group.barrier();
  return value;
}
}  // namespace xpu
