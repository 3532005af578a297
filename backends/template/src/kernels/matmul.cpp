// matmul of row-major matrices: batch axes broadcast, a vector is a row or a column.
#include <algorithm>
#include <type_traits>

#include "kernels.hpp"

namespace {
// The strides of t's batch axes, broadcast to the output's.
void batch_strides(const DLTensor* t, int n_batch, int64_t* strides) {
  for (int i = 0; i < n_batch; ++i) {
    const int own = i - n_batch + t->ndim - 2;
    strides[i] = own < 0 || t->shape[own] == 1 ? 0 : t->strides[own];
  }
}

template <class T>
void matmul(const dvt_call* c) {
  using Acc = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // integers wrap
  const DLTensor *a = c->in[0], *b = c->in[1], *out = c->out[0];
  const int64_t terms = a->shape[a->ndim - 1];
  const int64_t rows = a->ndim > 1 ? a->shape[a->ndim - 2] : 1, columns = b->ndim > 1 ? b->shape[b->ndim - 1] : 1;
  const int n_batch = out->ndim - (a->ndim > 1) - (b->ndim > 1);
  int64_t a_strides[DVT_MAX_NDIM], b_strides[DVT_MAX_NDIM];
  batch_strides(a, n_batch, a_strides), batch_strides(b, n_batch, b_strides);

  T* to = dvt::data<T>(out);
  Iteration<2> batch{n_batch, out->shape, {a_strides, b_strides}};
  for (int64_t left = dvt::size(out) / (rows * columns); left > 0; --left, batch.next()) {
    const T* x = dvt::data<const T>(a) + batch.at[0];
    const T* y = dvt::data<const T>(b) + batch.at[1];
    for (int64_t i = 0; i < rows; ++i, to += columns, x += terms) {
      std::fill(to, to + columns, T(0));
      for (int64_t k = 0; k < terms; ++k)
        for (int64_t j = 0; j < columns; ++j) to[j] = T(Acc(to[j]) + Acc(x[k]) * Acc(y[k * columns + j]));
    }
  }
}
}  // namespace

void add_matmul(dvt::KernelTable& table) {
  for_each_type(Floats() + Signed() + Unsigned(), [&](auto t) {
    const DLDataType type = dvt::dtype_of<decltype(t)>();
    table.add(dvt::Row("dvt.matmul", run<matmul<decltype(t)>>).in(type).in(type).out(type).deterministic());
  });
}
