// Reductions of rows to one result each. An operation R has
//   Input, Output       element types in memory
//   Value               what terms are joined to: a plain struct or number
//   nothing()           of no terms
//   add(value, x, i)    with the row's element i, which the row has in its order
//   join(a, b)
//   result(value, how)  what is stored
#pragma once
#include "kernels/common/rows.hpp"
#include "kernels/common/types.hpp"

namespace gpu {
// One part of a row. What it comes to goes to `out` or, of several parts, to `partial`.
template <class R, class Team>
void reduce(const Team& team, const Place& place, const Part& part, const typename R::Input* x,
            typename R::Value* partial, typename R::Output* out, const ReductionPlan& how) {
  auto value = R::nothing();
  const typename R::Input* from = x + place.at[0];
  for_each_element(team, how, part, [&](uint64_t i, const Place& at) { R::add(value, from[at.at[0]], i); });
  value = team.template join<R>(value);
  if (team.lane != 0) return;
  if (how.parts > 1) partial[uint64_t(place.at[1]) * how.parts + part.index] = value;
  else out[place.at[1]] = R::result(value, how);
}
template <class R>
void reduce_rows(const typename R::Input* x, typename R::Value* partial, typename R::Output* out,
                 const ReductionPlan& how) {
  for_each_row(how, [&](const Group& group, uint64_t, const Place& place, const Part& part) {
    reduce<R>(group, place, part, x, partial, out, how);
  });
}
template <class R>
void reduce_columns(const typename R::Input* x, typename R::Value* partial, typename R::Output* out,
                    const ReductionPlan& how) {
  for_each_column(how, [&](Alone item, uint64_t, const Place& place, const Part& part) {
    reduce<R>(item, place, part, x, partial, out, how);
  });
}

// The parts of each row joined, by a group.
template <class R>
void reduce_parts(const typename R::Value* partial, typename R::Output* out, const ReductionPlan& how) {
  const Group group;
  for (uint64_t l = group.item.get_group(0); l < how.count; l += group.item.get_group_range(0)) {
    auto value = R::nothing();
    for_each_index(group, 0, how.parts, [&](uint64_t p) { value = R::join(value, partial[l * how.parts + p]); });
    value = group.template join<R>(value);
    if (group.lane == 0) out[l] = R::result(value, how);
  }
}
}  // namespace gpu

// Kernels <name>_rows_<suffix>, _columns_ and _parts_ of operation R.
#define GPU_REDUCTION(name, suffix, R)                                                                \
  KERNEL(1, name##_rows_##suffix)                                                                     \
  (const R::Input* x, R::Value* partial, R::Output* out, gpu::ReductionPlan how) {                    \
    gpu::reduce_rows<R>(x, partial, out, how);                                                        \
  }                                                                                                   \
  KERNEL(1, name##_columns_##suffix)                                                                  \
  (const R::Input* x, R::Value* partial, R::Output* out, gpu::ReductionPlan how) {                    \
    gpu::reduce_columns<R>(x, partial, out, how);                                                     \
  }                                                                                                   \
  KERNEL(1, name##_parts_##suffix)(const R::Value* partial, R::Output* out, gpu::ReductionPlan how) { \
    gpu::reduce_parts<R>(partial, out, how);                                                          \
  }
