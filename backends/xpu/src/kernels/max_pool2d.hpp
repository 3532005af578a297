// max_pool2d, avg_pool2d: an item for each result. Padding never wins a maximum; NaN does.
#include "dovetail/layout.hpp"
#include "kernels/common/types.hpp"

namespace {
template <class T>
struct Largest {
  using C = gpu::Compute<T>;
  static constexpr C nothing() {
    if constexpr (std::is_floating_point_v<C>) return -__builtin_inff();
    else if constexpr (std::is_unsigned_v<C>) return 0;
    else return C(uint64_t(1) << (8 * sizeof(C) - 1));
  }
  static C join(C a, C b) { return b > a || b != b ? b : a; }
};
template <class T>
struct Total {
  using C = gpu::Compute<T>;
  static constexpr C nothing() { return 0; }
  static C join(C a, C b) { return a + b; }
};

// Joins a window along a line. `dense` shows the CPU device's compiler that reads are contiguous; else it gathers.
template <class R, class T, bool dense>
auto join_line(const T* line, const dvt::WindowAxis& w, int64_t j) {
  auto value = R::nothing();
  for (int64_t b = 0; b < w.size; ++b) {
    const int64_t at = dense ? j + (b * w.dilation - w.padding) : w.place(j, b);
    if (w.holds(at)) value = R::join(value, gpu::Compute<T>(line[dense ? at : at * w.stride]));
  }
  return value;
}

// This item's result, finished by done(value, its row, its column). The range: channels of all images, rows,
// columns.
template <class R, class T, class F>
void pool(const T* x, T* out, const dvt::Windows& how, F done) {
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

template <class C>
C places(const dvt::WindowAxis& axis, int64_t o) {  // of its window that are no padding
  int64_t n = 0;
  for (int64_t tap = 0; tap < axis.size; ++tap) n += axis.holds(axis.place(o, tap));
  return C(n);
}

template <class T>
void average(const T* x, T* out, const dvt::Windows& how, bool with_padding) {
  using C = gpu::Compute<T>;
  pool<Total<T>>(x, out, how, [&](C total, int64_t i, int64_t j) {
    return total / (with_padding ? C(how.h.size * how.w.size) : places<C>(how.h, i) * places<C>(how.w, j));
  });
}
}  // namespace

#define MAX_POOL(suffix, T)                                                            \
  KERNEL(3, max_pool_##suffix)(const T* x, T* out, dvt::Windows how) {                 \
    pool<Largest<T>>(x, out, how, [](auto value, int64_t, int64_t) { return value; }); \
  }
DVT_NUMBERS(MAX_POOL)
#define AVG_POOL(suffix, T)                                                                   \
  KERNEL(3, avg_pool_##suffix)(const T* x, T* out, dvt::Windows how, uint32_t with_padding) { \
    average(x, out, how, with_padding);                                                       \
  }
DVT_FLOATS(AVG_POOL)
