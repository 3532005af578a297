// The accumulators of sum, prod, cumulative_sum and cumulative_prod.
#pragma once
#include "dovetail/floats.hpp"

namespace gpu {
template <class T, class Total>  // dvt::CompensatedSum or a like one
struct FloatSum {
  using Element = T;
  using Value = Total;
  static DVT_FN Value nothing() { return Value::nothing(); }
  static DVT_FN void append(Value& value, T x) { value.add(dvt::Compute<T>(x)); }
  static DVT_FN Value join(const Value& a, const Value& b) { return Value::join(a, b); }
  static DVT_FN T result(const Value& value) { return T(value.total()); }
  static DVT_FN T initial() { return T(dvt::Compute<T>(0)); }
};
template <class T>
struct IntegerSum {
  using Element = T;
  using Value = T;
  static DVT_FN T nothing() { return 0; }
  static DVT_FN void append(T& value, T x) { value = T(value + x); }
  static DVT_FN T join(T a, T b) { return T(a + b); }
  static DVT_FN T result(T value) { return value; }
  static DVT_FN T initial() { return 0; }
};
template <class T>
struct RunningProduct {
  using Element = T;
  using Value = dvt::Compute<T>;
  static DVT_FN Value nothing() { return 1; }
  static DVT_FN void append(Value& value, T x) { value = join(value, Value(x)); }
  static DVT_FN Value join(Value a, Value b) {
    if constexpr (sizeof(Value) < 4) return Value(uint32_t(a) * b);
    else return a * b;
  }
  static DVT_FN T result(Value value) { return T(value); }
  static DVT_FN T initial() { return T(Value(1)); }
};

// One of them as the operation of a reduction (kernels/common/reduction).
template <class R>
struct Reduction : R {
  using Input = typename R::Element;
  using Output = Input;
  template <class... Variant>
  static DVT_FN void add(typename R::Value& value, Input x, uint64_t, const Variant&...) {
    R::append(value, x);
  }
  template <class... How>
  static DVT_FN Output result(const typename R::Value& value, const How&...) {
    return R::result(value);
  }
};
}  // namespace gpu
