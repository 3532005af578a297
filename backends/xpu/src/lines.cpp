#include "lines.hpp"

#include <algorithm>

namespace xpu {
namespace {
// Appends to the list of n axes that begins at `first`.
void append(Axis* first, uint32_t& n, const Axis& axis) {
  if (axis.size == 1) return;
  if (n) {
    Axis& before = first[n - 1];
    const auto size = int64_t(axis.size);
    if (before.stride[0] == axis.stride[0] * size && before.stride[1] == axis.stride[1] * size) {
      before = {before.size * axis.size, {axis.stride[0], axis.stride[1]}};
      return;
    }
  }
  first[n++] = axis;
}
Range groups_of(uint64_t groups, size_t width) {
  constexpr uint64_t most_groups = 1 << 20;  // kernels go on in steps of all groups
  return {1, {size_t(std::clamp<uint64_t>(groups, 1, most_groups)) * width}, {width}};
}
// Items of a group, when each takes so many elements.
size_t width_for(uint64_t size, uint64_t each) {
  size_t width = 16;
  while (width < group_size && width * each < size) width *= 2;
  return width;
}
}  // namespace

Walk plan_walk(int axes, const int64_t* shape, const int64_t* first, const int64_t* second) {
  Walk walk{};
  for (int i = 0; i < axes; ++i) append(walk.axis, walk.axes, {uint64_t(shape[i]), {first[i], second[i]}});
  return walk;
}

Lines plan_lines(const DLTensor* x, uint32_t along, const int64_t* second) {
  Lines how{};
  how.count = how.size = how.parts = 1;
  Axis single{1, {1, 1}};  // of lines of one element
  for (const bool wanted : {false, true}) {
    Axis* const first = how.axis + how.kept;
    uint32_t& n = wanted ? how.along : how.kept;
    for (int i = 0; i < x->ndim; ++i) {
      if (bool(along >> i & 1) != wanted) continue;
      (wanted ? how.size : how.count) *= uint64_t(x->shape[i]);
      const Axis axis{uint64_t(x->shape[i]), {x->strides[i], second[i]}};
      if (wanted) single = axis;
      append(first, n, axis);
    }
  }
  if (!how.along) how.axis[how.kept] = single, how.along = 1;
  return how;
}

bool prefer_columns(Lines& how) {
  constexpr uint64_t few = 16;
  Axis *const begin = how.axis, *const end = begin + how.kept;
  const auto neighbours = [](const Axis& a) { return a.stride[0] == 1 && a.size >= few; };
  Axis* best = std::find_if(begin, end, neighbours);
  if (best == end)
    best = std::max_element(begin, end, [](const Axis& a, const Axis& b) { return a.size < b.size; });
  if (best == end || best->size < few) return false;
  const bool rows = end[how.along - 1].stride[0] == 1;
  if (how.size > few && (rows || best->stride[0] != 1)) return false;
  std::rotate(best, best + 1, end);
  return true;
}

Range range_of_groups(uint64_t groups, uint64_t size) {
  // Few items: a vector of a CPU, a sub-group of a GPU. More of them are slower where there are many groups.
  return groups_of(groups, width_for(size, 512));
}

Range range_of_columns(const Lines& how) {
  const uint64_t columns = how.axis[how.kept - 1].size;
  const size_t width = width_for(columns, 1);
  return groups_of(how.count / columns * ((columns + width - 1) / width) * how.parts, width);
}
}  // namespace xpu
