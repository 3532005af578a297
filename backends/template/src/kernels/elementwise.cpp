// y = f(x...), elementwise. Operands have the output's shape, with strides; a host scalar has none.
#include <tuple>
#include <type_traits>
#include <utility>

#include "ops.hpp"

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
void add(dvt::KernelTable& table, Map<F, Out, In...> map) {
  dvt::Row row(map.op, run<elementwise<F, Out, In...>>);
  (row.in(type_in_row<F, In>(), std::is_same_v<In, Out> ? anything : anything & ~DVT_O_ALIAS), ...);
  table.add(row.out(type_in_row<F, Out>()).deterministic());
}
}  // namespace

void add_elementwise(dvt::KernelTable& table) {
  for_each_map([&](auto map) { add(table, map); });
}
