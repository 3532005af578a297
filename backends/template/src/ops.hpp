// The elementwise ops and the folds that the device computes, and for which types: rows and compiled code are
// made of them.
#pragma once
#include <type_traits>

#include "dovetail/functors.hpp"
#include "kernels.hpp"

// y = F()(x...), elementwise.
template <class F, class Out, class... In>
struct Map {
  const char* op;
};

// Its operand or result of type T in a row. `where` does not look at the elements that it chooses from.
template <class F, class T>
DLDataType type_in_row() {
  constexpr bool of_any_type = std::is_same_v<F, dvt::functors::Where> && !std::is_same_v<T, bool>;
  return of_any_type ? any_of_size<T>() : dvt::dtype_of<T>();
}

// visit(Map) for each of them.
template <class Visit>
void for_each_map(Visit visit) {
  namespace fn = dvt::functors;
  constexpr Types<bool> boolean;
  const auto integers = Signed() + Unsigned();
  const auto numbers = Floats() + integers;
  const auto unary = [&](auto f, const char* op, auto types) {
    for_each_type(types, [&](auto t) { visit(Map<decltype(f), decltype(t), decltype(t)>{op}); });
  };
  const auto binary = [&](auto f, const char* op, auto types) {
    for_each_type(types, [&](auto t) { visit(Map<decltype(f), decltype(t), decltype(t), decltype(t)>{op}); });
  };
  const auto comparison = [&](auto f, const char* op, auto types) {
    for_each_type(types, [&](auto t) { visit(Map<decltype(f), bool, decltype(t), decltype(t)>{op}); });
  };
  binary(fn::Add(), "dvt.add", numbers);
  binary(fn::Subtract(), "dvt.subtract", numbers);
  binary(fn::Multiply(), "dvt.multiply", numbers);
  binary(fn::Divide(), "dvt.divide", Floats());
  binary(fn::Quotient(), "dvt.quotient", integers);
  binary(fn::Maximum(), "dvt.maximum", numbers + boolean);
  binary(fn::Minimum(), "dvt.minimum", numbers + boolean);
  comparison(fn::Equal(), "dvt.equal", numbers + boolean);
  comparison(fn::Less(), "dvt.less", numbers + boolean);
  binary(fn::BitwiseAnd(), "dvt.bitwise_and", integers + boolean);
  binary(fn::BitwiseOr(), "dvt.bitwise_or", integers + boolean);
  binary(fn::BitwiseXor(), "dvt.bitwise_xor", integers + boolean);
  binary(fn::ShiftLeft(), "dvt.bitwise_left_shift", integers);
  binary(fn::ShiftRight(), "dvt.bitwise_right_shift", integers);
  unary(fn::Floor(), "dvt.floor", numbers);
  unary(fn::Sqrt(), "dvt.sqrt", Floats());
  unary(fn::Exp(), "dvt.exp", Floats());
  unary(fn::Log(), "dvt.log", Floats());
  unary(fn::Sin(), "dvt.sin", Floats());
  for_each_type(Sizes(), [&](auto t) {
    using T = decltype(t);
    visit(Map<fn::Where, T, bool, T, T>{"dvt.where"});
  });
}

// ---- folds ------------------------------------------------------------------------------------------------------

// Pairwise summation: the error grows with the logarithm of the number of terms. level[i] holds a sum of 2^i terms
// if n has bit i.
template <class T>
struct Sum {
  T level[64];
  uint64_t n = 0;
  void take(T x) {
    int i = 0;
    for (uint64_t full = n++; full & 1; full >>= 1) x = level[i++] + x;
    level[i] = x;
  }
  T result() const {
    T x = 0;
    for (int i = 0; i < 64; ++i)
      if (n >> i & 1) x = level[i] + x;
    return x;
  }
};

template <class T>
struct Max {
  T most{};
  bool any = false;
  void take(T x) {
    if (!any || x > most || x != x) most = most == most ? x : most;  // NaN wins, and stays
    any = true;
  }
  T result() const { return most; }
};

// Integers are summed as uint64, so they wrap.
template <class T>
using SumOf = Sum<std::conditional_t<std::is_integral_v<T>, uint64_t, T>>;

// Elements of type T become one.
template <class T, class State>
struct Fold {
  const char* op;
};

// visit(Fold) for each of them.
template <class Visit>
void for_each_fold(Visit visit) {
  for_each_type(Floats() + Signed() + Unsigned() + Types<bool>(), [&](auto t) {
    using T = decltype(t);
    visit(Fold<T, SumOf<T>>{"dvt.sum"});
    visit(Fold<T, Max<T>>{"dvt.max"});
  });
}
