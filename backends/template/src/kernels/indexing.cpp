// take and scatter: slices along one axis by index. Tensors are seen as (outer, axis, inner).
#include <cstring>

#include "kernels.hpp"

namespace {
struct Axis {
  int64_t number, size, outer = 1, inner = 1;
  Axis(const dvt_call* c, const DLTensor* x) : number(dvt::Attrs(c).i64(0)), size(x->shape[number]) {
    for (int64_t i = 0; i < x->ndim; ++i)
      if (i != number) (i < number ? outer : inner) *= x->shape[i];
  }
  // A negative index counts from the end. Returns false and reports a fault if the index is out of range.
  bool find(int64_t& index) const {
    const int64_t given = index;
    if (index < 0) index += size;
    const bool there = index >= 0 && index < size;
    if (!there) bad_index(given, number, size);
    return there;
  }
};

template <class T>
void take(const dvt_call* c) {
  const Axis axis(c, c->in[0]);
  const T* x = dvt::data<const T>(c->in[0]);
  const int64_t* indices = dvt::data<const int64_t>(c->in[1]);
  T* out = dvt::data<T>(c->out[0]);
  for (int64_t j = 0, n = dvt::size(c->in[1]); j < n; ++j) {
    int64_t index = indices[j];
    if (!axis.find(index)) return;
    for (int64_t i = 0; i < axis.outer; ++i)
      std::memcpy(out + (i * n + j) * axis.inner, x + (i * axis.size + index) * axis.inner,
                  size_t(axis.inner) * sizeof(T));
  }
}

// A copy of x whose slices at the indices are those of the updates, which broadcast. Iterates over the updates.
template <class T>
void scatter(const dvt_call* c) {
  const DLTensor *x = c->in[0], *updates = c->in[2], *out = c->out[0];
  const Axis axis(c, x);
  const int64_t* indices = dvt::data<const int64_t>(c->in[1]);
  T* to = dvt::data<T>(out);
  if (to != dvt::data<T>(x)) std::memcpy(to, dvt::data<T>(x), dvt::bytes(x));

  int64_t shape[DVT_MAX_NDIM], strides[DVT_MAX_NDIM];
  for (int i = 0; i < x->ndim; ++i) {
    const int own = i - (x->ndim - updates->ndim);
    shape[i] = i == axis.number ? c->in[1]->shape[0] : x->shape[i];
    strides[i] = own < 0 || updates->shape[own] == 1 ? 0 : updates->strides[own];
  }
  int64_t left = axis.outer * shape[axis.number] * axis.inner;
  for (Iteration<1> at{x->ndim, shape, {strides}}; left > 0; --left, at.next()) {
    int64_t index = indices[at.index[axis.number]], place = 0;
    if (!axis.find(index)) return;
    for (int i = 0; i < x->ndim; ++i) place = place * x->shape[i] + (i == axis.number ? index : at.index[i]);
    to[place] = dvt::data<const T>(updates)[at.at[0]];
  }
}
}  // namespace

void add_indexing(dvt::KernelTable& table) {
  for_each_type(Sizes(), [&](auto t) {
    using T = decltype(t);
    const DLDataType any = any_of_size<T>();
    table.add(dvt::Row("dvt.take", run<take<T>>).in(any).in(dvt::i64).out(any).deterministic());
    dvt::Row row("dvt.scatter", run<scatter<T>>);
    table.add(row.in(any, DVT_O_ALIAS).in(dvt::i64).in(any, DVT_O_STRIDED).out(any).deterministic());
  });
}
