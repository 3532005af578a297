// cumulative_sum, cumulative_prod along one axis: operand 0 is x, operand 1 the result. A line that is cut into
// parts takes three kernels: the total of each part, the totals before each part, and the parts themselves.
#include "kernels/common/lines.hpp"
#include "kernels/common/types.hpp"

namespace {
template <class T>
struct AddFloats {
  using Element = T;
  using Value = dvt::CompensatedSum<gpu::Compute<T>>;
  static Value nothing() { return Value::nothing(); }
  static Value of(T x) { return {gpu::Compute<T>(x), 0}; }
  static Value join(const Value& a, const Value& b) { return Value::join(a, b); }
  static T result(const Value& value) { return T(value.total()); }
  static T initial() { return T(gpu::Compute<T>(0)); }
};
template <class T>
struct AddIntegers {
  using Element = T;
  using Value = T;
  static T nothing() { return 0; }
  static T of(T x) { return x; }
  static T join(T a, T b) { return T(a + b); }
  static T result(T value) { return value; }
  static T initial() { return 0; }
};
template <class T>
struct Multiply {
  using Element = T;
  using Value = gpu::Compute<T>;
  static Value nothing() { return 1; }
  static Value of(T x) { return Value(x); }
  static Value join(Value a, Value b) {
    if constexpr (sizeof(Value) < 4) return Value(uint32_t(a) * b);
    else return a * b;
  }
  static T result(Value value) { return T(value); }
  static T initial() { return T(Value(1)); }
};

// A part of a line, after a total of `before`. Each item takes some contiguous elements at a time.
template <class R, class Team>
void scan(const Team& team, const gpu::Part& part, typename R::Value before, const typename R::Element* from,
          int64_t stride, typename R::Element* to, int64_t to_stride) {
  using Value = typename R::Value;
  constexpr uint64_t each = 4;
  for (uint64_t tile = part.begin; tile < part.end; tile += each * team.width) {
    const uint64_t begin = tile + each * team.lane;
    const uint64_t n = begin < part.end ? sycl::min(part.end - begin, each) : 0;
    typename R::Element x[each];
    Value sum = R::nothing();
    for (uint64_t k = 0; k < each; ++k)
      if (k < n) x[k] = from[int64_t(begin + k) * stride], sum = R::join(sum, R::of(x[k]));
    Value all, value = R::join(before, team.template scan<R>(sum, all));
    for (uint64_t k = 0; k < each; ++k)
      if (k < n) value = R::join(value, R::of(x[k])), to[int64_t(begin + k) * to_stride] = R::result(value);
    before = R::join(before, all);
  }
}
template <class R, class Team>
void scan(const Team& team, uint64_t line, const gpu::Place& place, const gpu::Part& part,
          const typename R::Element* x, const typename R::Value* partial, typename R::Element* out,
          const gpu::Lines& how, uint32_t initial) {
  const gpu::Axis& axis = how.axis[how.kept];
  typename R::Element* to = out + place.at[1];
  if (initial) {
    if (part.index == 0 && team.lane == 0) *to = R::initial();
    to += axis.stride[1];
  }
  const auto before = how.parts > 1 ? partial[line * how.parts + part.index] : R::nothing();
  scan<R>(team, part, before, x + place.at[0], axis.stride[0], to, axis.stride[1]);
}

template <class R>
void scan_lines(const typename R::Element* x, const typename R::Value* partial, typename R::Element* out,
                const gpu::Lines& how, uint32_t initial) {
  gpu::for_each_line(how,
                     [&](const gpu::Group& group, uint64_t line, const gpu::Place& place, const gpu::Part& part) {
                       scan<R>(group, line, place, part, x, partial, out, how, initial);
                     });
}
template <class R>
void scan_columns(const typename R::Element* x, typename R::Element* out, const gpu::Lines& how, uint32_t initial) {
  gpu::for_each_column(how, [&](gpu::Alone item, uint64_t line, const gpu::Place& place, const gpu::Part& part) {
    scan<R>(item, line, place, part, x, nullptr, out, how, initial);
  });
}
template <class R>
void scan_totals(const typename R::Element* x, typename R::Value* partial, const gpu::Lines& how) {
  gpu::for_each_line(how,
                     [&](const gpu::Group& group, uint64_t line, const gpu::Place& place, const gpu::Part& part) {
                       auto value = R::nothing();
                       const typename R::Element* from = x + place.at[0];
                       gpu::for_each_element(group, how, part, [&](uint64_t, const gpu::Place& at) {
                         value = R::join(value, R::of(from[at.at[0]]));
                       });
                       value = group.template join<R>(value);
                       if (group.lane == 0) partial[line * how.parts + part.index] = value;
                     });
}
template <class R>
void scan_parts(typename R::Value* partial, const gpu::Lines& how) {
  gpu::for_each_item(how.count, [&](size_t line) {
    auto before = R::nothing();
    for (uint64_t p = 0; p < how.parts; ++p) {
      auto& here = partial[line * how.parts + p];
      const auto next = R::join(before, here);
      here = before, before = next;
    }
  });
}
}  // namespace

#define SCAN(name, suffix, R, T)                                                             \
  KERNEL(1, name##_lines_##suffix)                                                           \
  (const T* x, const R::Value* partial, T* out, gpu::Lines how, uint32_t initial) {          \
    scan_lines<R>(x, partial, out, how, initial);                                            \
  }                                                                                          \
  KERNEL(1, name##_columns_##suffix)(const T* x, T* out, gpu::Lines how, uint32_t initial) { \
    scan_columns<R>(x, out, how, initial);                                                   \
  }                                                                                          \
  KERNEL(1, name##_totals_##suffix)(const T* x, R::Value* partial, gpu::Lines how) {         \
    scan_totals<R>(x, partial, how);                                                         \
  }                                                                                          \
  KERNEL(1, name##_parts_##suffix)(R::Value * partial, gpu::Lines how) { scan_parts<R>(partial, how); }

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
