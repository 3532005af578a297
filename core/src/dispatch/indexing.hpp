// x[items] for ints, forward slices, new axes and one ellipsis: a view.
#pragma once
#include <span>

#include "dispatch/tensor.hpp"

namespace dovetail {
struct IndexItem {
  enum Kind : uint8_t { at, slice, new_axis, ellipsis } kind;
  int64_t start = 0, stop = INT64_MAX, step = 1;  // as in Python, not clipped; at: start. step > 0
};

struct Region {
  Tensor view;                                                          // shares x's buffer
  int64_t start[DVT_MAX_NDIM], stop[DVT_MAX_NDIM], step[DVT_MAX_NDIM];  // over x's axes
  int out_axis[DVT_MAX_NDIM];  // the view's axis for each of x's; -1 where an int removed it
};
// Throws Error(index).
Region select(const Tensor& x, std::span<const IndexItem> items);

// `v`, which broadcasts to the shape of the region, as a view over x's own axes. Leading axes of size 1 that the
// region lacks are dropped, as in NumPy. Throws Error(value) where it does not broadcast.
Tensor over_axes(const Tensor& v, const Tensor& x, const Region&);
}  // namespace dovetail
