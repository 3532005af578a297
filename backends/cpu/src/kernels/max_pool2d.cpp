// max_pool2d, avg_pool2d and their forms with one spatial axis. Padding never wins a maximum; NaN does.
#include <atomic>

#include "kernel.hpp"
#include "scratch.hpp"
#include "side.hpp"
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

struct Window {
  Side h, w;
  int64_t images, channels, image_stride, channel_stride;

  explicit Window(const dvt_call* c, bool dilates) {
    const DLTensor &x = *c->in[0], &y = *c->out[0];
    const dvt::Attrs a(c);
    images = x.shape[0], channels = x.shape[1], image_stride = x.strides[0], channel_stride = x.strides[1];
    const dvt::Ints kernel = a.i64s(0), step = a.i64s(1), padding = a.i64s(2);
    const auto side = [&](uint32_t i) {
      Side s;
      s.in = x.shape[i + 2], s.out = y.shape[i + 2], s.stride = x.strides[i + 2], s.kernel = kernel[i];
      s.step = step[i], s.padding = padding[i], s.dilation = dilates ? a.i64s(3)[i] : 1;
      return s.prepare(), s;
    };
    if (x.ndim == 4) h = side(0);
    w = side(uint32_t(x.ndim - 3));
  }
};

// f(plane of x, plane of the output) over images and channels on the pool; false: out of memory.
template <class T, class F>
dvt_status planes(const dvt_call* c, const Window& w, F f) {
  const T* const x = dvt::data<const T>(c->in[0]);
  T* const y = dvt::data<T>(c->out[0]);
  const int64_t size = w.h.out * w.w.out, work = size * w.h.kernel * w.w.kernel + 1;
  std::atomic<bool> complete{true};
  dvt::parallel_for(
      uint64_t(w.images * w.channels), uint64_t(32768 / work + 1), [&](uint64_t begin, uint64_t end, uint32_t) {
        for (int64_t i = int64_t(begin); i < int64_t(end); ++i) {
          const T* const plane = x + i / w.channels * w.image_stride + i % w.channels * w.channel_stride;
          if (!f(plane, y + i * size)) complete.store(false, std::memory_order_relaxed);
        }
      });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

// total[j] = combine(total[j], element) for the elements of the windows of output row i.
template <class T, class F>
DOVETAIL_CPU_INLINE void gather(const Window& w, const T* x, int64_t i, Computed<T>* total, F combine) {
  const int64_t step = w.w.step * w.w.stride;
  for (int64_t a = 0; a < w.h.kernel; ++a) {
    const int64_t row = w.h.place(i, a);
    if (row < 0 || row >= w.h.in) continue;
    for (int64_t b = 0; b < w.w.kernel; ++b) {
      int64_t from, to;
      w.w.outputs(b, from, to);
      const T* const line = x + row * w.h.stride + w.w.place(0, b) * w.w.stride;
      for (int64_t j = from; j < to; ++j) total[j] = combine(total[j], wide(line[j * step]));
    }
  }
}

// The memory for a row of totals: the output itself, or scratch for fp16 and bf16. nullptr: out of memory.
template <class T>
Computed<T>* totals(T* y, int64_t n) {
  if constexpr (is_half<T>) return static_cast<float*>(scratch(Scratch::result, size_t(n) * sizeof(float)));
  else return y;
}

template <class T>
dvt_status max_pool(dvt_device*, const dvt_call* c) {
  using C = Computed<T>;
  const Window w(c, true);
  constexpr C least = std::is_floating_point_v<C> ? C(-__builtin_inff())
                      : C(-1) < C(0)              ? C(uint64_t{1} << (8 * sizeof(C) - 1))
                                                  : C(0);
  return planes<T>(c, w, [&](const T* x, T* y) {
    C* total = totals(y, w.w.out);
    if (!total) return false;
    for (int64_t i = 0; i < w.h.out; ++i, y += w.w.out) {
      if constexpr (!is_half<T>) total = y;
      for (int64_t j = 0; j < w.w.out; ++j) total[j] = least;
      gather(w, x, i, total, [](C a, C b) { return (b > a) | (b != b) ? b : a; });
      if constexpr (is_half<T>) narrow(total, y, w.w.out);
    }
    return true;
  });
}

template <class T>
dvt_status avg_pool(dvt_device*, const dvt_call* c) {
  using C = Computed<T>;
  const Window w(c, false);
  const bool with_padding = dvt::Attrs(c).boolean(3, true);
  return planes<T>(c, w, [&](const T* x, T* y) {
    C* total = totals(y, w.w.out);
    if (!total) return false;
    for (int64_t i = 0; i < w.h.out; ++i, y += w.w.out) {
      if constexpr (!is_half<T>) total = y;
      for (int64_t j = 0; j < w.w.out; ++j) total[j] = 0;
      gather(w, x, i, total, [](C a, C b) { return a + b; });
      const int64_t rows = with_padding ? w.h.kernel : w.h.within(i);
      for (int64_t j = 0; j < w.w.out; ++j) total[j] /= C(rows * (with_padding ? w.w.kernel : w.w.within(j)));
      if constexpr (is_half<T>) narrow(total, y, w.w.out);
    }
    return true;
  });
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
