// max_pool2d, avg_pool2d and their forms with one spatial axis. Padding never wins a maximum; NaN does.
#include "kernel.hpp"
#include "simd/half.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
template <class T>
inline constexpr bool is_half = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
template <class T>
using Computed = std::conditional_t<is_half<T>, float, T>;
template <class T>
DOVETAIL_CPU_INLINE Computed<T> wide(T x) {
  if constexpr (is_half<T>) return widen(x);
  else return x;
}
template <class T>
DOVETAIL_CPU_INLINE T back(Computed<T> x) {
  if constexpr (is_half<T>) return narrow<T>(x);
  else return x;
}

// One spatial axis. With fewer axes the missing one has size 1 and a window of 1.
struct Side {
  int64_t in = 1, out = 1, stride = 1, kernel = 1, step = 1, padding = 0, dilation = 1;

  // The places of the kernel that meet x for output `o`: [from, to).
  void places(int64_t o, int64_t& from, int64_t& to) const {
    const int64_t first = o * step - padding;
    from = first < 0 ? (-first + dilation - 1) / dilation : 0;
    to = (in - first + dilation - 1) / dilation;
    to = to < kernel ? to : kernel;
    if (from > to) from = to;
  }
};

struct Window {
  Side h, w;
  int64_t images, channels, image_stride, channel_stride;

  explicit Window(const dvt_call* c, bool dilates) {
    const DLTensor &x = *c->in[0], &y = *c->out[0];
    const dvt::Attrs a(c);
    images = x.shape[0], channels = x.shape[1], image_stride = x.strides[0], channel_stride = x.strides[1];
    const dvt::Ints kernel = a.i64s(0), step = a.i64s(1), padding = a.i64s(2);
    const auto side = [&](uint32_t i) {
      return Side{x.shape[i + 2], y.shape[i + 2], x.strides[i + 2],          kernel[i],
                  step[i],        padding[i],     dilates ? a.i64s(3)[i] : 1};
    };
    if (x.ndim == 4) h = side(0);
    w = side(uint32_t(x.ndim - 3));
  }
};

// f(plane of x, plane of the output) over images and channels on the pool.
template <class T, class F>
void planes(const dvt_call* c, const Window& w, F f) {
  const T* const x = dvt::data<const T>(c->in[0]);
  T* const y = dvt::data<T>(c->out[0]);
  const int64_t size = w.h.out * w.w.out, work = size * w.h.kernel * w.w.kernel + 1;
  dvt::parallel_for(uint64_t(w.images * w.channels), uint64_t(32768 / work + 1),
                    [&](uint64_t begin, uint64_t end, uint32_t) {
                      for (int64_t i = int64_t(begin); i < int64_t(end); ++i)
                        f(x + i / w.channels * w.image_stride + i % w.channels * w.channel_stride, y + i * size);
                    });
}

// combine(total, element) for every element of the window of output (i, j).
template <class T, class F>
DOVETAIL_CPU_INLINE Computed<T> gather(const Window& w, const T* x, int64_t i, int64_t j, Computed<T> total,
                                       F combine) {
  int64_t h0, h1, w0, w1;
  w.h.places(i, h0, h1), w.w.places(j, w0, w1);
  const T* const corner = x + (i * w.h.step - w.h.padding) * w.h.stride + (j * w.w.step - w.w.padding) * w.w.stride;
  for (int64_t a = h0; a < h1; ++a)
    for (int64_t b = w0; b < w1; ++b)
      total = combine(total, wide(corner[a * w.h.dilation * w.h.stride + b * w.w.dilation * w.w.stride]));
  return total;
}

template <class T>
dvt_status max_pool(dvt_device*, const dvt_call* c) {
  using C = Computed<T>;
  const Window w(c, true);
  constexpr C least = std::is_floating_point_v<C> ? C(-__builtin_inff())
                      : C(-1) < C(0)              ? C(uint64_t{1} << (8 * sizeof(C) - 1))
                                                  : C(0);
  planes<T>(c, w, [&](const T* x, T* y) {
    for (int64_t i = 0; i < w.h.out; ++i)
      for (int64_t j = 0; j < w.w.out; ++j)
        *y++ = back<T>(gather(w, x, i, j, least, [](C a, C b) { return b > a || b != b ? b : a; }));
  });
  return DVT_OK;
}

template <class T>
dvt_status avg_pool(dvt_device*, const dvt_call* c) {
  using C = Computed<T>;
  const Window w(c, false);
  const bool with_padding = dvt::Attrs(c).boolean(3, true);
  planes<T>(c, w, [&](const T* x, T* y) {
    for (int64_t i = 0; i < w.h.out; ++i)
      for (int64_t j = 0; j < w.w.out; ++j) {
        int64_t count = w.h.kernel * w.w.kernel, h0, h1, w0, w1;
        if (!with_padding) w.h.places(i, h0, h1), w.w.places(j, w0, w1), count = (h1 - h0) * (w1 - w0);
        *y++ = back<T>(gather(w, x, i, j, C(0), [](C a, C b) { return a + b; }) / C(count));
      }
  });
  return DVT_OK;
}

void add_row(Table& table, const char* op, dvt::Row::Run run, DLDataType type) {
  table.add(dvt::Row(op, run).in(type, DVT_O_STRIDED).out(type).deterministic().kernel());
}
template <class T>
void add_max(Table& table, DLDataType type) {
  for (const char* op : {"dvt.max_pool2d", "dvt.max_pool1d"}) add_row(table, op, max_pool<T>, type);
}
template <class T>
void add(Table& table, DLDataType type) {
  add_max<T>(table, type);
  for (const char* op : {"dvt.avg_pool2d", "dvt.avg_pool1d"}) add_row(table, op, avg_pool<T>, type);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
  add_max<int8_t>(table, dvt::i8);
  add_max<int16_t>(table, dvt::i16);
  add_max<int32_t>(table, dvt::i32);
  add_max<int64_t>(table, dvt::i64);
  add_max<uint8_t>(table, dvt::u8);
  add_max<uint16_t>(table, dvt::u16);
  add_max<uint32_t>(table, dvt::u32);
  add_max<uint64_t>(table, dvt::u64);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
