// softmax, log_softmax along one axis: operand 0 is x, operand 1 the result.
#include "dovetail/math.hpp"
#include "kernels/common/rows.hpp"
#include "kernels/common/types.hpp"

namespace {
template <class C>
struct Greatest {  // NaN wins
  static C nothing() { return -dvt::math::infinity<C>; }
  static C join(C a, C b) { return b > a || b != b ? b : a; }
};

// Exponentials are kept in the result until their sum is known; those of fp16 and bf16 would lose digits there, and
// are computed twice.
template <class T, bool logarithm, class Team>
void softmax(const Team& team, const gpu::Place& place, const gpu::Part& all, const T* x, T* out,
             const gpu::ReductionPlan& how) {
  using C = gpu::Compute<T>;
  const T* from = x + place.at[0];
  T* to = out + place.at[1];
  C top = Greatest<C>::nothing();
  gpu::for_each_element(team, how, all,
                        [&](uint64_t, const gpu::Place& at) { top = Greatest<C>::join(top, C(from[at.at[0]])); });
  top = team.template join<Greatest<C>>(top);
  if (!sycl::isfinite(top)) top = 0;
  constexpr bool keeps = !logarithm && !gpu::is_narrow<T>;
  auto sum = dvt::CompensatedSum<C>::nothing();
  gpu::for_each_element(team, how, all, [&](uint64_t, const gpu::Place& at) {
    const C e = dvt::math::exp(C(from[at.at[0]]) - top);
    if constexpr (keeps) to[at.at[1]] = e;
    sum.add(e);
  });
  const C total = team.template join<dvt::CompensatedSum<C>>(sum).total();
  const C log_total = logarithm ? dvt::math::log(total) : C(0);
  gpu::for_each_element(team, how, all, [&](uint64_t, const gpu::Place& at) {
    if constexpr (logarithm) to[at.at[1]] = T((C(from[at.at[0]]) - top) - log_total);
    else if constexpr (keeps) to[at.at[1]] /= total;
    else to[at.at[1]] = T(dvt::math::exp(C(from[at.at[0]]) - top) / total);
  });
}
template <class T, bool logarithm>
void softmax_rows(const T* x, T* out, const gpu::ReductionPlan& how) {
  gpu::for_each_row(how, [&](const gpu::Group& group, uint64_t, const gpu::Place& place, const gpu::Part& all) {
    softmax<T, logarithm>(group, place, all, x, out, how);
  });
}
template <class T, bool logarithm>
void softmax_columns(const T* x, T* out, const gpu::ReductionPlan& how) {
  gpu::for_each_column(how, [&](gpu::Alone item, uint64_t, const gpu::Place& place, const gpu::Part& all) {
    softmax<T, logarithm>(item, place, all, x, out, how);
  });
}
}  // namespace

#define SOFTMAX(suffix, T)                                                              \
  KERNEL(1, softmax_rows_##suffix)(const T* x, T* out, gpu::ReductionPlan how) {        \
    softmax_rows<T, false>(x, out, how);                                                \
  }                                                                                     \
  KERNEL(1, softmax_columns_##suffix)(const T* x, T* out, gpu::ReductionPlan how) {     \
    softmax_columns<T, false>(x, out, how);                                             \
  }                                                                                     \
  KERNEL(1, log_softmax_rows_##suffix)(const T* x, T* out, gpu::ReductionPlan how) {    \
    softmax_rows<T, true>(x, out, how);                                                 \
  }                                                                                     \
  KERNEL(1, log_softmax_columns_##suffix)(const T* x, T* out, gpu::ReductionPlan how) { \
    softmax_columns<T, true>(x, out, how);                                              \
  }
DVT_FLOATS(SOFTMAX)
