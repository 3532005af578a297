// sum and max over axes.
#include "ops.hpp"

namespace {
template <class T, class State>
void reduce(const dvt_call* c) {
  const DLTensor* x = c->in[0];
  int n_kept = 0, n_reduced = 0;
  int64_t kept_shape[DVT_MAX_NDIM], kept_strides[DVT_MAX_NDIM], shape[DVT_MAX_NDIM], strides[DVT_MAX_NDIM];
  const dvt::Ints axes = dvt::Attrs(c).i64s(0);  // ascending, none negative
  int64_t terms = 1;
  const int64_t* next = axes.begin();
  for (int axis = 0; axis < x->ndim; ++axis)
    if (next != axes.end() && *next == axis) {
      shape[n_reduced] = x->shape[axis], strides[n_reduced++] = x->strides[axis];
      terms *= x->shape[axis], ++next;
    } else {
      kept_shape[n_kept] = x->shape[axis], kept_strides[n_kept++] = x->strides[axis];
    }
  T* out = dvt::data<T>(c->out[0]);
  Iteration<1> results{n_kept, kept_shape, {kept_strides}};
  for (int64_t left = dvt::size(c->out[0]); left > 0; --left, results.next()) {
    const T* from = dvt::data<const T>(x) + results.at[0];
    State fold;
    Iteration<1> term{n_reduced, shape, {strides}};
    for (int64_t i = 0; i < terms; ++i, term.next()) fold.take(from[term.at[0]]);
    *out++ = T(fold.result());
  }
}

template <class T, class State>
void add(dvt::KernelTable& table, Fold<T, State> fold) {
  dvt::Row row(fold.op, run<reduce<T, State>>);
  table.add(row.in(dvt::dtype_of<T>(), DVT_O_STRIDED).out(dvt::dtype_of<T>()).deterministic());
}
}  // namespace

void add_reductions(dvt::KernelTable& table) {
  for_each_fold([&](auto fold) { add(table, fold); });
}
