// Scans of rows by an operation R of gpu/kernels/shared/totals.hpp.
#pragma once
#include "kernels/common/rows.hpp"
#include "kernels/common/types.hpp"

namespace gpu {
template <class T>
using Total = dvt::CompensatedSum<Compute<T>>;

// A part of a row, after a total of `before`. Each item takes some contiguous elements at a time.
template <class R, class Team>
void scan(const Team& team, const Part& part, typename R::Value before, const typename R::Element* from,
          int64_t stride, typename R::Element* to, int64_t to_stride) {
  using Value = typename R::Value;
  constexpr uint64_t each = 4;
  for (uint64_t tile = part.begin; tile < part.end; tile += each * team.width) {
    const uint64_t begin = tile + each * team.lane;
    const uint64_t n = begin < part.end ? sycl::min(part.end - begin, each) : 0;
    typename R::Element x[each];
    Value sum = R::nothing();
    for (uint64_t k = 0; k < each; ++k)
      if (k < n) x[k] = from[int64_t(begin + k) * stride], R::append(sum, x[k]);
    Value all, value = R::join(before, team.template scan<R>(sum, all));
    for (uint64_t k = 0; k < each; ++k)
      if (k < n) R::append(value, x[k]), to[int64_t(begin + k) * to_stride] = R::result(value);
    before = R::join(before, all);
  }
}
template <class R, class Team>
void scan(const Team& team, uint64_t row, const Place& place, const Part& part, const typename R::Element* x,
          const typename R::Value* partial, typename R::Element* out, const ReductionPlan& how, uint32_t initial) {
  const Axis& axis = how.axis[how.kept];
  typename R::Element* to = out + place.at[1];
  if (initial) {
    if (part.index == 0 && team.lane == 0) *to = R::initial();
    to += axis.stride[1];
  }
  const auto before = how.parts > 1 ? partial[row * how.parts + part.index] : R::nothing();
  scan<R>(team, part, before, x + place.at[0], axis.stride[0], to, axis.stride[1]);
}

template <class R>
void scan_rows(const typename R::Element* x, const typename R::Value* partial, typename R::Element* out,
               const ReductionPlan& how, uint32_t initial) {
  for_each_row(how, [&](const Group& group, uint64_t row, const Place& place, const Part& part) {
    scan<R>(group, row, place, part, x, partial, out, how, initial);
  });
}
template <class R>
void scan_columns(const typename R::Element* x, typename R::Element* out, const ReductionPlan& how,
                  uint32_t initial) {
  for_each_column(how, [&](Alone item, uint64_t row, const Place& place, const Part& part) {
    scan<R>(item, row, place, part, x, nullptr, out, how, initial);
  });
}
template <class R>
void scan_totals(const typename R::Element* x, typename R::Value* partial, const ReductionPlan& how) {
  for_each_row(how, [&](const Group& group, uint64_t row, const Place& place, const Part& part) {
    auto value = R::nothing();
    const typename R::Element* from = x + place.at[0];
    for_each_element(group, how, part, [&](uint64_t, const Place& at) { R::append(value, from[at.at[0]]); });
    value = group.template join<R>(value);
    if (group.lane == 0) partial[row * how.parts + part.index] = value;
  });
}
template <class R>
void scan_parts(typename R::Value* partial, const ReductionPlan& how) {
  for_each_item(how.count, [&](size_t row) {
    auto before = R::nothing();
    for (uint64_t p = 0; p < how.parts; ++p) {
      auto& here = partial[row * how.parts + p];
      const auto next = R::join(before, here);
      here = before, before = next;
    }
  });
}
}  // namespace gpu

#define GPU_SCAN_TOTALS(name, suffix, R, T)                                                  \
  KERNEL(1, name##_totals_##suffix)(const T* x, R::Value* partial, gpu::ReductionPlan how) { \
    gpu::scan_totals<R>(x, partial, how);                                                    \
  }
