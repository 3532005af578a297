// softmax, log_softmax along one axis: operand 0 is x, operand 1 the result. A compact row that fits into
// registers is read once; any other twice, the sum being rescaled whenever a larger element comes (Milakov and
// Gimelshein, 2018).
#include "kernels/common/register_rows.cuh"
#include "kernels/common/sum.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace {
using gpu::Compute;

__device__ __forceinline__ float exp(float x) { return gpu::math::exp(x); }
__device__ __forceinline__ float log(float x) { return gpu::math::log(x); }
// Called when the greatest element so far changes, which is rare: not inlined.
template <class C>
__device__ __attribute__((noinline)) C exp_of(C x) {
  return gpu::math::exp(x);
}
// Never inlined: their constants would take the registers.
__device__ __forceinline__ double exp(double x) { return exp_of(x); }
__device__ __attribute__((noinline)) double log(double x) { return gpu::math::log(x); }

// Elements are compared to finite numbers: infinities then give the right results, NaN where they are the largest.
template <class C>
inline constexpr C most = C(3.4028234663852886e38);
template <>
inline constexpr double most<double> = 1.7976931348623157e308;

template <class C>
struct Greatest {  // NaN wins
  static __device__ __forceinline__ C nothing() { return -most<C>; }
  static __device__ __forceinline__ C join(C a, C b) { return b > a || b != b ? b : a; }
};

// The sum of exp(x - top).
template <class T>
struct Exponentials {
  using C = Compute<T>;
  C top;
  gpu::Sum<T> sum;

  static __device__ __forceinline__ Exponentials nothing() { return {-most<C>, gpu::Sum<T>::nothing()}; }
  __device__ __forceinline__ void add(C x) {
    const C limited = x > most<C> ? most<C> : x;
    if (limited > top) sum.scale(exp_of(top - limited)), top = limited;
    sum.add(exp(x - top));
  }
  static __device__ __forceinline__ Exponentials join(Exponentials a, Exponentials b) {
    const C top = a.top > b.top ? a.top : b.top;
    a.sum.scale(exp_of(a.top - top)), b.sum.scale(exp_of(b.top - top));
    return {top, gpu::Sum<T>::join(a.sum, b.sum)};
  }
};

template <class T>
inline constexpr int loads = sizeof(T) == 4 ? gpu::loads_at_once : 2;  // registers for more are missing

// body(i, x) for this thread's elements of a row.
template <class T, class Body>
__device__ __forceinline__ void for_each(const gpu::Row& team, const gpu::Part& row, const T* from, int64_t stride,
                                         Body body) {
  if (stride == 1) gpu::for_each_packed<loads<T>>(team, row, from, body);
  else gpu::for_each_apart<loads<T>>(team, row, from, stride, body);
}
template <class T, class Body>
__device__ __forceinline__ void for_each(const gpu::Column& team, const gpu::Part& row, const T* from,
                                         int64_t stride, Body body) {
  gpu::for_each_apart<loads<T>>(team, row, from, stride, body);
}

template <class T, bool logarithm, class Team>
__device__ __forceinline__ void softmax(const Team& team, const gpu::Place& place, const gpu::Part& row, const T* x,
                                        T* out, const gpu::Axis& axis) {
  using C = Compute<T>;
  const T* const from = x + place.at[0];
  T* const to = out + place.at[1];
  auto all = Exponentials<T>::nothing();
  for_each(team, row, from, axis.stride[0], [&](uint64_t, T element) { all.add(C(element)); });
  all = team.template join<Exponentials<T>>(all);
  const C top = all.top, factor = logarithm ? log(all.sum.total()) : 1 / all.sum.total();
  for_each(team, row, from, axis.stride[0], [&](uint64_t i, T element) {
    const C d = C(element) - top;
    to[int64_t(i) * axis.stride[1]] = T(logarithm ? d - factor : exp(d) * factor);
  });
}

template <class T, bool logarithm>
__device__ __forceinline__ void softmax_in_registers(const T* x, T* out, const gpu::ReductionPlan& how,
                                                     bool packed) {
  using C = Compute<T>;
  gpu::for_each_row(how, [&](const gpu::Row& team, uint64_t, const gpu::Place& place, const gpu::Part& row) {
    constexpr C missing = -gpu::math::infinity<C>;  // of which exp is 0
    gpu::RegisterRow<T> values(team, row, x + place.at[0], packed, missing);
    C top = Greatest<C>::nothing();
    values.for_each([&](C element) { top = Greatest<C>::join(top, element); });
    top = team.template join<Greatest<C>>(top);
    if (top > most<C>) top = most<C>;
    auto sum = gpu::Sum<T>::nothing();
    values.for_each([&](C& element) {
      element -= top;
      const C e = exp(element);
      if (!logarithm) element = e;
      sum.add(e);
    });
    const C total = team.template join<gpu::Sum<T>>(sum).total();
    const C factor = logarithm ? log(total) : 1 / total;
    values.store(out + place.at[1], [&](C element) { return logarithm ? element - factor : element * factor; });
  });
}
}  // namespace
#endif

#define SOFTMAX(name, logarithm, suffix, T)                                                                \
  KERNEL(512, name##_in_registers_##suffix)(const T* x, T* out, gpu::ReductionPlan how, uint32_t packed) { \
    softmax_in_registers<T, logarithm>(x, out, how, packed);                                               \
  }                                                                                                        \
  KERNEL(512, name##_rows_##suffix)(const T* x, T* out, gpu::ReductionPlan how) {                          \
    gpu::for_each_row(how, [&](const auto& team, uint64_t, const auto& place, const auto& row) {           \
      softmax<T, logarithm>(team, place, row, x, out, how.axis[how.kept]);                                 \
    });                                                                                                    \
  }                                                                                                        \
  KERNEL(256, name##_columns_##suffix)(const T* x, T* out, gpu::ReductionPlan how) {                       \
    gpu::for_each_column(how, [&](const auto& team, uint64_t, const auto& place, const auto& row) {        \
      softmax<T, logarithm>(team, place, row, x, out, how.axis[how.kept]);                                 \
    });                                                                                                    \
  }
#define SOFTMAXES(suffix, T)         \
  SOFTMAX(softmax, false, suffix, T) \
  SOFTMAX(log_softmax, true, suffix, T)
DVT_FLOATS(SOFTMAXES)
