// y = f(x...), elementwise. Operands have the output's shape, with strides; a host scalar has none.
#include <tuple>
#include <type_traits>
#include <utility>

#include "dovetail/functors.hpp"
#include "kernels.hpp"

namespace {
template <class F, class Out, class... In, size_t... I>
void apply(const dvt_call* c, Types<In...>, std::index_sequence<I...>) {
  static constexpr int64_t scalar[DVT_MAX_NDIM] = {};
  const auto strides = [](const DLTensor* t) { return t->ndim ? t->strides : scalar; };
  const DLTensor* out = c->out[0];
  const int last = out->ndim - 1;
  const int64_t n = out->shape[last];
  Iteration<1 + sizeof...(In)> rows{last, out->shape, {out->strides, strides(c->in[I])...}};
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
}  // namespace

void add_elementwise(dvt::KernelTable& table) {
  namespace fn = dvt::functors;
  constexpr Types<bool> boolean;
  const auto integers = Signed() + Unsigned();
  const auto numbers = Floats() + integers;
  add_binary<fn::Add>(table, "dvt.add", numbers);
  add_binary<fn::Subtract>(table, "dvt.subtract", numbers);
  add_binary<fn::Multiply>(table, "dvt.multiply", numbers);
  add_binary<fn::Divide>(table, "dvt.divide", Floats());
  add_binary<fn::Quotient>(table, "dvt.quotient", integers);
  add_binary<fn::Maximum>(table, "dvt.maximum", numbers + boolean);
  add_binary<fn::Minimum>(table, "dvt.minimum", numbers + boolean);
  add_comparison<fn::Equal>(table, "dvt.equal", numbers + boolean);
  add_comparison<fn::Less>(table, "dvt.less", numbers + boolean);
  add_binary<fn::BitwiseAnd>(table, "dvt.bitwise_and", integers + boolean);
  add_binary<fn::BitwiseOr>(table, "dvt.bitwise_or", integers + boolean);
  add_binary<fn::BitwiseXor>(table, "dvt.bitwise_xor", integers + boolean);
  add_binary<fn::ShiftLeft>(table, "dvt.bitwise_left_shift", integers);
  add_binary<fn::ShiftRight>(table, "dvt.bitwise_right_shift", integers);
  add_unary<fn::Floor>(table, "dvt.floor", numbers);
  add_unary<fn::Sqrt>(table, "dvt.sqrt", Floats());
  add_unary<fn::Exp>(table, "dvt.exp", Floats());
  add_unary<fn::Log>(table, "dvt.log", Floats());
  add_unary<fn::Sin>(table, "dvt.sin", Floats());
  for_each_type(Sizes(), [&](auto t) {
    using T = decltype(t);
    dvt::Row row("dvt.where", run<elementwise<fn::Where, T, bool, T, T>>);
    row.in(dvt::boolean, anything & ~DVT_O_ALIAS).in(any_of_size<T>(), anything).in(any_of_size<T>(), anything);
    table.add(row.out(any_of_size<T>()).deterministic());
  });
}
