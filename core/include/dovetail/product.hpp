// dovetail/product.hpp - calls of dvt.matmul and dvt.linear as one batch of products of matrices. C++17,
// header-only, like backend.hpp and like it no part of the protocol.
#ifndef DOVETAIL_PRODUCT_HPP
#define DOVETAIL_PRODUCT_HPP

#include "dovetail/backend.hpp"
#include "dovetail/layout.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
// One more axis of the batch, merged with the one before it where the strides allow it.
inline void add_batch_axis(Product& p, int64_t size, int64_t a_stride, int64_t b_stride) {
  if (size == 1) return;
  p.matrices *= uint64_t(size);
  if (p.axes) {
    const uint32_t last = p.axes - 1;
    if (p.a_batch[last] == size * a_stride && p.b_batch[last] == size * b_stride) {
      p.batch[last] *= size, p.a_batch[last] = a_stride, p.b_batch[last] = b_stride;
      return;
    }
  }
  p.batch[p.axes] = size, p.a_batch[p.axes] = a_stride, p.b_batch[p.axes] = b_stride;
  ++p.axes;
}

// A batch that shares b is more rows of a.
inline void fold_batch_into_rows(Product& p) {
  if (p.axes != 1 || p.b_batch[0] || (p.m > 1 && p.a_batch[0] != int64_t(p.m) * p.a_row)) return;
  if (p.m == 1) p.a_row = p.a_batch[0];
  p.m *= uint64_t(p.batch[0]);
  p.axes = 0, p.matrices = 1;
}

// matmul(a, b)
inline Product product_of_matmul(const dvt_call* c) {
  const DLTensor &a = *c->in[0], &b = *c->in[1];
  const bool row = a.ndim == 1, column = b.ndim == 1;  // vectors
  Product p{};
  p.matrices = 1;
  p.m = row ? 1 : uint64_t(a.shape[a.ndim - 2]), p.k = uint64_t(a.shape[a.ndim - 1]);
  p.n = column ? 1 : uint64_t(b.shape[b.ndim - 1]);
  p.a_row = row ? 0 : a.strides[a.ndim - 2], p.a_column = a.strides[a.ndim - 1];
  p.b_row = b.strides[column ? 0 : b.ndim - 2], p.b_column = column ? 0 : b.strides[b.ndim - 1];
  const int a_axes = row ? 0 : a.ndim - 2, b_axes = column ? 0 : b.ndim - 2;
  const int axes = a_axes > b_axes ? a_axes : b_axes;
  for (int i = 0; i < axes; ++i) {
    const int ai = i - (axes - a_axes), bi = i - (axes - b_axes);
    const int64_t a_size = ai < 0 ? 1 : a.shape[ai], b_size = bi < 0 ? 1 : b.shape[bi];
    add_batch_axis(p, a_size == 1 ? b_size : a_size, a_size == 1 ? 0 : a.strides[ai],
                   b_size == 1 ? 0 : b.strides[bi]);
  }
  fold_batch_into_rows(p);
  return p;
}

// linear(x, weight[out, in], bias[out]): x's leading axes are rows where their strides allow it, else batches.
inline Product product_of_linear(const dvt_call* c) {
  const DLTensor &x = *c->in[0], &w = *c->in[1];
  const int last = x.ndim - 1;
  Product p{};
  p.matrices = 1;
  p.m = last ? uint64_t(x.shape[last - 1]) : 1, p.k = uint64_t(x.shape[last]), p.n = uint64_t(w.shape[0]);
  p.a_row = last ? x.strides[last - 1] : 0, p.a_column = x.strides[last];
  p.b_row = w.strides[1], p.b_column = w.strides[0];
  for (int i = 0; i + 1 < last; ++i) add_batch_axis(p, x.shape[i], x.strides[i], 0);
  fold_batch_into_rows(p);
  return p;
}
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_PRODUCT_HPP
