// Kernels over rows: by a work-group each, or by an item each where the rows are contiguous with each other.
#pragma once
#include "kernels/common/axes.hpp"
#include "kernels/common/kernel.hpp"

namespace gpu {
// The items that work on a row: a group, 16 to 256 of them, a multiple of 16.
class Group {
 public:
  sycl::nd_item<1> item = sycl::ext::oneapi::this_work_item::get_nd_item<1>();
  size_t lane = item.get_local_id(0), width = item.get_local_range(0);

  void barrier() const { sycl::group_barrier(item.get_group()); }

  // A value that is the same for all items. Compilers for CPUs do not see that after a loop, and would then read
  // contiguous elements one by one.
  Place same(const Place& place) const {
    const auto group = item.get_group();
    return {{sycl::group_broadcast(group, place.at[0]), sycl::group_broadcast(group, place.at[1])}};
  }

  // The items' values joined by R::join, in an order that depends on the width alone, and returned to every item.
  template <class R, class Value>
  Value join(Value value) const {
    auto& slots = memory<Value>();
    slots[lane] = value;
    barrier();
    if (width > few) {
      if (lane < few) {
        for (size_t k = lane + few; k < width; k += few) value = R::join(value, slots[k]);
        slots[lane] = value;
      }
      barrier();
    }
    Value part[few];
    for (size_t k = 0; k < few; ++k) part[k] = slots[k];
    for (size_t half = few / 2; half; half /= 2)
      for (size_t k = 0; k < half; ++k) part[k] = R::join(part[k], part[k + half]);
    barrier();
    return part[0];
  }

  // The values of the items before this one joined; `all` becomes those of all items.
  template <class R, class Value>
  Value scan(Value value, Value& all) const {
    auto& slots = memory<Value>();
    const size_t block = width / few, first = lane / block * block;
    slots[lane] = value;
    barrier();
    if (lane == first)  // within blocks
      for (size_t k = first + 1; k < first + block; ++k) slots[k] = value = R::join(value, slots[k]);
    barrier();
    Value before = R::nothing();
    for (size_t k = block - 1; k < first; k += block) before = R::join(before, slots[k]);
    if (lane != first) before = R::join(before, slots[lane - 1]);
    all = R::nothing();
    for (size_t k = block - 1; k < width; k += block) all = R::join(all, slots[k]);
    barrier();
    return before;
  }

 private:
  static constexpr size_t few = 16, most_items = 256;

  template <class Value>
  static Value (&memory()) [most_items] {
    static sycl::ext::oneapi::experimental::work_group_static<Value[most_items]> slots;
    return slots;
  }
};

// Or an item alone.
struct Alone {
  static constexpr size_t lane = 0, width = 1;

  template <class R, class Value>
  Value join(Value value) const {
    return value;
  }
  template <class R, class Value>
  Value scan(Value value, Value& all) const {
    all = value;
    return R::nothing();
  }
};

// Elements [begin, end) of a row.
struct Part {
  uint64_t index, begin, end;
};
inline Part part_of(const Group& group, const ReductionPlan& how, uint64_t index) {
  const uint64_t length = quotient(how.size + how.parts - 1, how.parts),
                 begin = sycl::min(index * length, how.size);
  const Place bounds = group.same({{int64_t(begin), int64_t(sycl::min(begin + length, how.size))}});
  return {index, uint64_t(bounds.at[0]), uint64_t(bounds.at[1])};
}

// body(team, row, place, part) for each part of each row, by a group.
template <class Body>
void for_each_row(const ReductionPlan& how, Body body) {
  const Group group;
  for (uint64_t g = group.item.get_group(0); g < how.count * how.parts; g += group.item.get_group_range(0)) {
    const uint64_t row = quotient(g, how.parts);
    body(group, row, group.same(locate(how.axis, 0, how.kept, row)), part_of(group, how, g - row * how.parts));
  }
}
// By an item: consecutive rows along the last kept axis.
template <class Body>
void for_each_column(const ReductionPlan& how, Body body) {
  const Group group;
  const Axis& columns = how.axis[how.kept - 1];
  const uint64_t blocks = quotient(columns.size + group.width - 1, group.width);
  const uint64_t groups = quotient(how.count, columns.size) * blocks * how.parts;
  for (uint64_t g = group.item.get_group(0); g < groups; g += group.item.get_group_range(0)) {
    const uint64_t b = quotient(g, how.parts), outer = quotient(b, blocks);
    const uint64_t column = (b - outer * blocks) * group.width + group.lane;
    const uint64_t row = outer * columns.size + column;
    const Place first = group.same(locate(how.axis, 0, how.kept - 1, outer));
    const Part part = part_of(group, how, g - b * how.parts);
    if (column >= columns.size) continue;
    const auto at = int64_t(column);
    if (columns.stride[0] == 1 && columns.stride[1] == 1)  // shows compilers that reads are contiguous
      body(Alone(), row, Place{{first.at[0] + at, first.at[1] + at}}, part);
    else
      body(Alone(), row, Place{{first.at[0] + at * columns.stride[0], first.at[1] + at * columns.stride[1]}}, part);
  }
}

// body(i) for this item's share of [begin, end). All items go the same way, but for the last step: compilers for
// CPUs make vectors of them then.
template <class Team, class Body>
void for_each_index(const Team& team, uint64_t begin, uint64_t end, Body body) {
  uint64_t i = begin;
  for (; i + team.width <= end; i += team.width) body(i + team.lane);
  if (i + team.lane < end) body(i + team.lane);
}

// body(i, place) for this item's share of a part's elements; `place` counts from the row's begin.
template <class Team, class Body>
void for_each_element(const Team& team, const ReductionPlan& how, const Part& part, Body body) {
  const Axis& axis = how.axis[how.kept];
  if (how.along > 1)
    for_each_index(team, part.begin, part.end,
                   [&](uint64_t i) { body(i, locate(how.axis, how.kept, how.kept + how.along, i)); });
  else if (axis.stride[0] == 1 && axis.stride[1] == 1)
    for_each_index(team, part.begin, part.end, [&](uint64_t i) { body(i, Place{{int64_t(i), int64_t(i)}}); });
  else
    for_each_index(team, part.begin, part.end,
                   [&](uint64_t i) { body(i, Place{{int64_t(i) * axis.stride[0], int64_t(i) * axis.stride[1]}}); });
}
}  // namespace gpu
