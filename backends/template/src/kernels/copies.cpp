// Copies and new elements: copy, astype, full, iota.
#include "half.hpp"
#include "kernels.hpp"

namespace {
// Any strides on both sides: the output may be part of another tensor.
template <class To, class From>
void copy(const dvt_call* c) {
  static constexpr int64_t scalar[DVT_MAX_NDIM] = {};
  const DLTensor *in = c->in[0], *out = c->out[0];
  const int last = out->ndim - 1;
  const int64_t n = out->shape[last], from_step = in->ndim ? in->strides[last] : 0, to_step = out->strides[last];
  Iteration<2> rows{last, out->shape, {in->ndim ? in->strides : scalar, out->strides}};
  for (int64_t left = dvt::size(out) / n; left > 0; --left, rows.next()) {
    const From* from = dvt::data<const From>(in) + rows.at[0];
    To* to = dvt::data<To>(out) + rows.at[1];
    for (int64_t i = 0; i < n; ++i)
      if constexpr (std::is_same_v<To, From>) to[i * to_step] = from[i * from_step];
      else to[i * to_step] = convert<To>(from[i * from_step]);
  }
}

template <class T>
void full(const dvt_call* c) {
  const dvt_attr& value = c->attr[1];
  const T x = value.kind == DVT_A_F64    ? convert<T>(value.v.f)
              : value.kind == DVT_A_F64S ? convert<T>(value.v.fs[0])
              : value.kind == DVT_A_U64  ? convert<T>(value.v.raw)
                                         : convert<T>(value.v.i);
  T* out = dvt::data<T>(c->out[0]);
  for (int64_t i = 0, n = dvt::size(c->out[0]); i < n; ++i) out[i] = x;
}

template <class T>
void iota(const dvt_call* c) {
  T* out = dvt::data<T>(c->out[0]);
  for (int64_t i = 0, n = dvt::size(c->out[0]); i < n; ++i) out[i] = convert<T>(i);
}
}  // namespace

void add_copies(dvt::KernelTable& table) {
  for_each_type(Sizes(), [&](auto t) {
    using T = decltype(t);
    dvt::Row row("dvt.copy", run<copy<T, T>>);
    row.in(any_of_size<T>(), DVT_O_STRIDED | DVT_O_HOST_SCALAR).out(any_of_size<T>(), DVT_O_STRIDED);
    table.add(row.deterministic());
  });
  for_each_type(all_types, [&](auto to) {
    using To = decltype(to);
    table.add(dvt::Row("dvt.full", run<full<To>>).out(type_of<To>()).deterministic());
    table.add(dvt::Row("dvt.iota", run<iota<To>>).out(type_of<To>()).deterministic());
    for_each_type(all_types, [&](auto from) {
      using From = decltype(from);
      dvt::Row row("dvt.astype", run<copy<To, From>>);
      row.in(type_of<From>(), DVT_O_STRIDED | DVT_O_HOST_SCALAR).out(type_of<To>());
      table.add(row.deterministic());
    });
  });
}
