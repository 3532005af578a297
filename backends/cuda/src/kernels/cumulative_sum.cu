// cumulative_sum, cumulative_prod along one axis: operand 0 is x, operand 1 the result. A line that is cut into
// parts takes three kernels: the total of each part (the kernels of sum and prod), the totals
// before each part, and the parts themselves.
#include "kernels/common/lines.cuh"
#include "kernels/common/sum.cuh"

#if !defined(GPU_LIST_KERNELS)
namespace {
using gpu::Compute;
using gpu::Lines;
using gpu::Part;
using gpu::Place;
using gpu::Row;

template <class T>
struct AddFloats {
  using Element = T;
  using Value = gpu::Sum<T>;
  static __device__ __forceinline__ Value nothing() { return Value::nothing(); }
  static __device__ __forceinline__ Value join(Value a, T x) { return a.add(Compute<T>(x)), a; }
  static __device__ __forceinline__ Value join(const Value& a, const Value& b) { return Value::join(a, b); }
  static __device__ __forceinline__ T result(const Value& value) { return T(value.total()); }
  static __device__ __forceinline__ T initial() { return T(Compute<T>(0)); }
};
template <class T>
struct AddIntegers {
  using Element = T;
  using Value = T;
  static __device__ __forceinline__ T nothing() { return 0; }
  static __device__ __forceinline__ T join(T a, T b) { return T(a + b); }
  static __device__ __forceinline__ T result(T value) { return value; }
  static __device__ __forceinline__ T initial() { return 0; }
};
template <class T>
struct Multiply {
  using Element = T;
  using Value = Compute<T>;
  static __device__ __forceinline__ Value nothing() { return 1; }
  static __device__ __forceinline__ Value join(Value a, Value b) {
    if constexpr (sizeof(Value) < 4) return Value(uint32_t(a) * b);
    else return a * b;
  }
  static __device__ __forceinline__ T result(Value value) { return T(value); }
  static __device__ __forceinline__ T initial() { return T(Value(1)); }
};
// With an element.
template <class R>
__device__ __forceinline__ typename R::Value append(const typename R::Value& value, typename R::Element x) {
  if constexpr (gpu::is_narrow<typename R::Element> && std::is_same_v<typename R::Value, float>)
    return R::join(value, float(x));
  else return R::join(value, x);
}

// The start of a line's results: after an initial one, if any, which the line's first thread writes.
template <class R>
__device__ __forceinline__ typename R::Element* results_at(typename R::Element* to, int64_t stride,
                                                           const Part& part, uint32_t lane, uint32_t initial) {
  if (!initial) return to;
  if (part.exists && part.index == 0 && lane == 0) *to = R::initial();
  return to + stride;
}

// Each thread takes a pack of contiguous elements at a time. All threads of a warp take the same number of steps.
template <class R>
__device__ __forceinline__ void scan_part(const Row& team, const Part& part, uint64_t length,
                                          typename R::Value before, const typename R::Element* from, int64_t stride,
                                          typename R::Element* to, int64_t to_stride) {
  using T = typename R::Element;
  using Value = typename R::Value;
  constexpr int n = gpu::pack_length<T>;
  const bool aligned = gpu::is_aligned(from), to_aligned = gpu::is_aligned(to);
  for (uint64_t tile = 0; tile < length; tile += uint64_t(team.width) * n) {
    const uint64_t begin = part.begin + tile + team.lane * n;
    gpu::Pack<T, n> x;
    if (stride == 1) x = gpu::load_pack<n>(from, begin, part.end, aligned);
    Value sum = R::nothing();
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if (begin + j >= part.end) break;
      if (stride != 1) x.at[j] = from[int64_t(begin + j) * stride];
      sum = append<R>(sum, x.at[j]);
    }
    Value all, value = R::join(before, team.template scan<R>(sum, all));
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if (begin + j >= part.end) break;
      value = append<R>(value, x.at[j]);
      x.at[j] = R::result(value);
      if (to_stride != 1) to[int64_t(begin + j) * to_stride] = x.at[j];
    }
    if (to_stride == 1) gpu::store_pack<n>(to, x, begin, part.end, to_aligned);
    before = R::join(before, all);
  }
}

template <class R>
__device__ __forceinline__ void scan_lines(const typename R::Element* x, const typename R::Value* partial,
                                           typename R::Element* out, const Lines& how, uint32_t initial) {
  const gpu::Axis& axis = how.axis[how.kept];
  gpu::for_each_line(how, [&](const Row& team, uint64_t line, const Place& place, const Part& part) {
    auto* const to = results_at<R>(out + place.at[1], axis.stride[1], part, team.lane, initial);
    const auto before =
        how.parts.value > 1 && part.exists ? partial[line * how.parts.value + part.index] : R::nothing();
    scan_part<R>(team, part, how.part, before, x + place.at[0], axis.stride[0], to, axis.stride[1]);
  });
}
// A line by a thread alone.
template <class R>
__device__ __forceinline__ void scan_columns(const typename R::Element* x, typename R::Element* out,
                                             const Lines& how, uint32_t initial) {
  const gpu::Axis& axis = how.axis[how.kept];
  gpu::for_each_column(how, [&](const gpu::Column& thread, uint64_t, const Place& place, const Part& line) {
    auto* const to = results_at<R>(out + place.at[1], axis.stride[1], line, 0, initial);
    auto value = R::nothing();
    gpu::for_each_apart(thread, line, x + place.at[0], axis.stride[0],
                        [&](uint64_t i, typename R::Element element) {
                          value = append<R>(value, element);
                          to[int64_t(i) * axis.stride[1]] = R::result(value);
                        });
  });
}
// By a warp for each line.
template <class R>
__device__ __forceinline__ void scan_parts(typename R::Value* partial, const Lines& how) {
  const Row warp(gpu::warp_size);
  const uint64_t warps = blockDim.x / gpu::warp_size, parts = how.parts.value;
  for (uint64_t line = blockIdx.x * warps + threadIdx.x / gpu::warp_size; line < how.count;
       line += gridDim.x * warps) {
    auto before = R::nothing(), all = R::nothing();
    for (uint64_t first = 0; first < parts; first += gpu::warp_size, before = R::join(before, all)) {
      const uint64_t p = first + warp.lane;
      const auto here = p < parts ? partial[line * parts + p] : R::nothing();
      const auto value = R::join(before, warp.template scan<R>(here, all));
      if (p < parts) partial[line * parts + p] = value;
    }
  }
}
}  // namespace
#endif

#define SCAN(name, suffix, R, T)                                                               \
  KERNEL(256, name##_lines_##suffix)                                                           \
  (const T* x, const R::Value* partial, T* out, gpu::Lines how, uint32_t initial) {            \
    scan_lines<R>(x, partial, out, how, initial);                                              \
  }                                                                                            \
  KERNEL(256, name##_columns_##suffix)(const T* x, T* out, gpu::Lines how, uint32_t initial) { \
    scan_columns<R>(x, out, how, initial);                                                     \
  }                                                                                            \
  KERNEL(256, name##_parts_##suffix)(R::Value * partial, gpu::Lines how) { scan_parts<R>(partial, how); }

#define SCAN_FLOATS(suffix, T)                  \
  using Add_##suffix = AddFloats<T>;            \
  using Multiply_##suffix = Multiply<T>;        \
  SCAN(cumulative_sum, suffix, Add_##suffix, T) \
  SCAN(cumulative_prod, suffix, Multiply_##suffix, T)
DVT_FLOATS(SCAN_FLOATS)

#define SCAN_INTEGERS(suffix, T)                \
  using Add_##suffix = AddIntegers<T>;          \
  using Multiply_##suffix = Multiply<T>;        \
  SCAN(cumulative_sum, suffix, Add_##suffix, T) \
  SCAN(cumulative_prod, suffix, Multiply_##suffix, T)
DVT_UNSIGNED(SCAN_INTEGERS)
