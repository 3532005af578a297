// y = f(x...) element by element. Operands have the output's shape, with strides; a scalar of the host has none.
#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels.hpp"

namespace {
template <class F, class Out, class... In, size_t... I>
void apply(const dvt_call* c, Types<In...>, std::index_sequence<I...>) {
  static constexpr int64_t scalar[DVT_MAX_NDIM] = {};
  const auto strides = [](const DLTensor* t) { return t->ndim ? t->strides : scalar; };
  const DLTensor* out = c->out[0];
  const int last = out->ndim - 1;
  const int64_t n = out->shape[last];
  Walk<1 + sizeof...(In)> rows{last, out->shape, {out->strides, strides(c->in[I])...}};
  for (int64_t left = dvt::size(out) / n; left > 0; --left, rows.next()) {
    Out* to = dvt::data<Out>(out) + rows.at[0];
    const auto from = std::make_tuple(dvt::data<const In>(c->in[I]) + rows.at[1 + I]...);
    for (int64_t i = 0; i < n; ++i)
      to[i * rows.strides[0][last]] = F()(std::get<I>(from)[i * rows.strides[1 + I][last]]...);
  }
}
template <class F, class Out, class... In>
void elementwise(const dvt_call* c) {
  apply<F, Out>(c, Types<In...>(), std::index_sequence_for<In...>());
}

constexpr unsigned anything = DVT_O_STRIDED | DVT_O_HOST_SCALAR | DVT_O_ALIAS;
template <class F, class Out, class... In>
void add(dvt::KernelTable& table, const char* op) {
  dvt::Row row(op, run<elementwise<F, Out, In...>>);
  (row.in(dvt::dtype_of<In>(), std::is_same_v<In, Out> ? anything : anything & ~DVT_O_ALIAS), ...);
  table.add(row.out(dvt::dtype_of<Out>()).deterministic());
}
template <class F, class List>
void add_unary(dvt::KernelTable& table, const char* op, List types) {
  for_each_type(types, [&](auto t) { add<F, decltype(t), decltype(t)>(table, op); });
}
template <class F, class List>
void add_binary(dvt::KernelTable& table, const char* op, List types) {
  for_each_type(types, [&](auto t) { add<F, decltype(t), decltype(t), decltype(t)>(table, op); });
}
template <class F, class List>
void add_comparison(dvt::KernelTable& table, const char* op, List types) {
  for_each_type(types, [&](auto t) { add<F, bool, decltype(t), decltype(t)>(table, op); });
}

// Integers wrap: they are counted in 64 bits without a sign, of which the lower ones stay.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
#define WRAPPING(Name, operation)                \
  struct Name {                                  \
    template <class T>                           \
    T operator()(T a, T b) const {               \
      const auto x = Wide<T>(a), y = Wide<T>(b); \
      return T(operation);                       \
    }                                            \
  }
WRAPPING(Add, x + y);
WRAPPING(Subtract, x - y);
WRAPPING(Multiply, x* y);

#define BINARY(Name, Result, operation) \
  struct Name {                         \
    template <class T>                  \
    Result operator()(T a, T b) const { \
      return Result(operation);         \
    }                                   \
  }
BINARY(Divide, T, a / b);
BINARY(Maximum, T, a > b || a != a ? a : b);  // NaN wins
BINARY(Minimum, T, a < b || a != a ? a : b);
BINARY(Equal, bool, a == b);
BINARY(Less, bool, a < b);
BINARY(And, T, a& b);
BINARY(Or, T, a | b);
BINARY(Xor, T, a ^ b);

struct Quotient {  // of integers: x / 0 is 0, and the least one / -1 is itself
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == T(-1)) return Subtract()(T(0), a);
    return T(a / b);
  }
};
struct ShiftLeft {
  template <class T>
  T operator()(T a, T b) const {
    return uint64_t(b) < 8 * sizeof(T) ? T(uint64_t(a) << b) : T(0);
  }
};
struct ShiftRight {
  template <class T>
  T operator()(T a, T b) const {
    return uint64_t(b) < 8 * sizeof(T) ? T(a >> b) : T(a < 0 ? -1 : 0);
  }
};

// Through double, float functions are right to half an ulp and a bit.
#define UNARY(Name, operation) \
  struct Name {                \
    template <class T>         \
    T operator()(T x) const {  \
      return T(operation);     \
    }                          \
  }
UNARY(Sqrt, std::sqrt(x));
UNARY(Exp, std::exp(double(x)));
UNARY(Log, std::log(double(x)));
UNARY(Sin, std::sin(double(x)));
struct Floor {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) return x;
    else return std::floor(x);
  }
};

struct Where {
  template <class T>
  T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};
}  // namespace

void add_elementwise(dvt::KernelTable& table) {
  constexpr Types<bool> boolean;
  const auto integers = Signed() + Unsigned();
  const auto numbers = Floats() + integers;
  add_binary<Add>(table, "dvt.add", numbers);
  add_binary<Subtract>(table, "dvt.subtract", numbers);
  add_binary<Multiply>(table, "dvt.multiply", numbers);
  add_binary<Divide>(table, "dvt.divide", Floats());
  add_binary<Quotient>(table, "dvt.quotient", integers);
  add_binary<Maximum>(table, "dvt.maximum", numbers + boolean);
  add_binary<Minimum>(table, "dvt.minimum", numbers + boolean);
  add_comparison<Equal>(table, "dvt.equal", numbers + boolean);
  add_comparison<Less>(table, "dvt.less", numbers + boolean);
  add_binary<And>(table, "dvt.bitwise_and", integers + boolean);
  add_binary<Or>(table, "dvt.bitwise_or", integers + boolean);
  add_binary<Xor>(table, "dvt.bitwise_xor", integers + boolean);
  add_binary<ShiftLeft>(table, "dvt.bitwise_left_shift", integers);
  add_binary<ShiftRight>(table, "dvt.bitwise_right_shift", integers);
  add_unary<Floor>(table, "dvt.floor", numbers);
  add_unary<Sqrt>(table, "dvt.sqrt", Floats());
  add_unary<Exp>(table, "dvt.exp", Floats());
  add_unary<Log>(table, "dvt.log", Floats());
  add_unary<Sin>(table, "dvt.sin", Floats());
  for_each_type(Sizes(), [&](auto t) {
    using T = decltype(t);
    dvt::Row row("dvt.where", run<elementwise<Where, T, bool, T, T>>);
    row.in(dvt::boolean, anything & ~DVT_O_ALIAS).in(any_of_size<T>(), anything).in(any_of_size<T>(), anything);
    table.add(row.out(any_of_size<T>()).deterministic());
  });
}
