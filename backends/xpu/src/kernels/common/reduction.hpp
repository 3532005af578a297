// Reductions of lines to one result each. An operation R has
//   Input, Output       element types in memory
//   Value               what terms are joined to: a plain struct or number
//   nothing()           of no terms
//   add(value, x, i)    with the line's element i, which the line has in its order
//   join(a, b)
//   result(value, how)  what is stored
#pragma once
#include "kernels/common/lines.hpp"
#include "kernels/common/types.hpp"

namespace xpu {
// A group for each part of a line. What it finds goes to `out` or, of one part among several, to `partial`.
template <class R>
void reduce_lines(const typename R::Input* x, typename R::Value* partial, typename R::Output* out,
                  const Lines& how) {
  const Group group;
  const bool dense = how.along == 1 && how.axis[how.kept].stride[0] == 1;
  for (uint64_t g = group.item.get_group(0); g < how.count * how.parts; g += group.item.get_group_range(0)) {
    const uint64_t l = quotient(g, how.parts), p = g - l * how.parts;
    const Place place = line(how, l);
    const Part part(how, p);
    const typename R::Input* from = x + place.at[0];
    auto value = R::nothing();
    if (dense) {
      for (uint64_t i = part.begin + group.lane; i < part.end; i += group.width) R::add(value, from[i], i);
    } else {
      for (uint64_t i = part.begin + group.lane; i < part.end; i += group.width)
        R::add(value, from[along(how, i)], i);
    }
    value = join_group<R>(group, value);
    if (group.lane != 0) continue;
    if (how.parts > 1) partial[uint64_t(place.at[1]) * how.parts + p] = value;
    else out[place.at[1]] = R::result(value, how);
  }
}

// An item for each line, or part of one: lines that are neighbours on the last kept axis are read side by side.
template <class R>
void reduce_columns(const typename R::Input* x, typename R::Value* partial, typename R::Output* out,
                    const Lines& how) {
  const Group group;
  const Axis& columns = how.axis[how.kept - 1];
  const uint64_t blocks = quotient(columns.size + group.width - 1, group.width);
  const uint64_t groups = quotient(how.count, columns.size) * blocks * how.parts;
  for (uint64_t g = group.item.get_group(0); g < groups; g += group.item.get_group_range(0)) {
    const uint64_t l = quotient(g, how.parts), p = g - l * how.parts, outer = quotient(l, blocks);
    const uint64_t column = (l - outer * blocks) * group.width + group.lane;
    if (column >= columns.size) continue;
    const Place place = locate(how.axis, 0, how.kept - 1, outer);
    const Part part(how, p);
    const typename R::Input* from = x + place.at[0];
    auto value = R::nothing();
    if (columns.stride[0] == 1) {
      for (uint64_t i = part.begin; i < part.end; ++i) R::add(value, (from + along(how, i))[column], i);
    } else {
      from += int64_t(column) * columns.stride[0];
      for (uint64_t i = part.begin; i < part.end; ++i) R::add(value, from[along(how, i)], i);
    }
    const uint64_t to = uint64_t(place.at[1]) + column * uint64_t(columns.stride[1]);
    if (how.parts > 1) partial[to * how.parts + p] = value;
    else out[to] = R::result(value, how);
  }
}

// The parts of each line, a group for each.
template <class R>
void reduce_parts(const typename R::Value* partial, typename R::Output* out, const Lines& how) {
  const Group group;
  for (uint64_t l = group.item.get_group(0); l < how.count; l += group.item.get_group_range(0)) {
    auto value = R::nothing();
    for (uint64_t p = group.lane; p < how.parts; p += group.width)
      value = R::join(value, partial[l * how.parts + p]);
    value = join_group<R>(group, value);
    if (group.lane == 0) out[l] = R::result(value, how);
  }
}

// A sum that carries what rounding takes off it. Infinities leave NaN behind there.
template <class T>
struct Sum {
  T value, lost;

  static Sum nothing() { return {T(0), T(0)}; }
  void add(T x) {
    const T sum = value + x, part = sum - value;
    lost += (value - (sum - part)) + (x - part);
    value = sum;
  }
  static Sum join(Sum a, const Sum& b) {
    a.add(b.value);
    a.lost += b.lost;
    return a;
  }
  T total() const { return lost == lost && lost != 0 ? value + lost : value; }
};
}  // namespace xpu

// Kernels <name>_lines_<suffix>, _columns_ and _parts_ of operation R.
#define XPU_REDUCTION(name, suffix, R)                                                        \
  KERNEL(1, name##_lines_##suffix)                                                            \
  (const R::Input* x, R::Value* partial, R::Output* out, xpu::Lines how) {                    \
    xpu::reduce_lines<R>(x, partial, out, how);                                               \
  }                                                                                           \
  KERNEL(1, name##_columns_##suffix)                                                          \
  (const R::Input* x, R::Value* partial, R::Output* out, xpu::Lines how) {                    \
    xpu::reduce_columns<R>(x, partial, out, how);                                             \
  }                                                                                           \
  KERNEL(1, name##_parts_##suffix)(const R::Value* partial, R::Output* out, xpu::Lines how) { \
    xpu::reduce_parts<R>(partial, out, how);                                                  \
  }
