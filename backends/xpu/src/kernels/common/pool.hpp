// Windows of images joined to one result each.
#pragma once
#include "dovetail/layout.hpp"
#include "kernels/common/types.hpp"

namespace gpu {
// Joins a window along a line. `dense` shows the CPU device's compiler that reads are contiguous; else it gathers.
template <class R, class T, bool dense>
auto join_line(const T* line, const dvt::WindowAxis& w, int64_t j) {
  auto value = R::nothing();
  for (int64_t b = 0; b < w.size; ++b) {
    const int64_t at = dense ? j + (b * w.dilation - w.padding) : w.place(j, b);
    if (w.holds(at)) value = R::join(value, Compute<T>(line[dense ? at : at * w.stride]));
  }
  return value;
}

// This item's result, joined by R::join and finished by done(value, its row, its column). The range: channels of
// all images, rows, columns.
template <class R, class T>
void pool(const T* x, T* out, const dvt::Windows& how, const R& done) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<3>();
  const auto plane = int64_t(item.get_group(0)), i = int64_t(item.get_global_id(1)),
             j = int64_t(item.get_global_id(2)), image = plane / how.channels;
  if (i >= how.h.out || j >= how.w.out) return;
  x += image * how.image_stride + (plane - image * how.channels) * how.channel_stride;
  const bool dense = how.w.step == 1 && how.w.stride == 1;
  auto value = R::nothing();
  for (int64_t a = 0; a < how.h.size; ++a) {
    const int64_t y = how.h.place(i, a);
    if (!how.h.holds(y)) continue;
    const T* const line = x + y * how.h.stride;
    // Each line is a part of its own: a sum over a large window loses less.
    value = R::join(value, dense ? join_line<R, T, true>(line, how.w, j) : join_line<R, T, false>(line, how.w, j));
  }
  out[(plane * how.h.out + i) * how.w.out + j] = T(done(value, i, j));
}
}  // namespace gpu
