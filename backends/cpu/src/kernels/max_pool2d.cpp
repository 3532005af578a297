// max_pool2d, avg_pool2d and their forms with one spatial axis. Padding never wins a maximum; NaN does.
#include <atomic>
#include <cstring>
#include <experimental/simd>
#include <utility>

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

// Vectors of the type in which T is computed.
template <class T>
struct Vectors {
  using C = Computed<T>;
  static constexpr int64_t n = int64_t(sizeof(std::experimental::native_simd<float>) / sizeof(C));
  typedef C Vector __attribute__((vector_size(n * sizeof(C))));

  template <class From>
  DOVETAIL_CPU_INLINE static Vector load(const From* from) {
    if constexpr (is_half<From>) return load_floats<n>(from);
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  template <class To>
  DOVETAIL_CPU_INLINE static void store(Vector v, To* to) {
    if constexpr (is_half<To>) store_floats<n>(v, to);
    else std::memcpy(to, &v, sizeof v);
  }
  // Every second element of two vectors.
  template <size_t... i>
  DOVETAIL_CPU_INLINE static Vector even(Vector a, Vector b, std::index_sequence<i...>) {
    return __builtin_shufflevector(a, b, (2 * i)...);
  }
  // n elements, `step` apart; where `step` is 2, one more is read.
  DOVETAIL_CPU_INLINE static Vector every(int64_t step, const C* from) {
    if (step == 1) return load(from);
    if (step == 2) return even(load(from), load(from + n), std::make_index_sequence<size_t(n)>());
    Vector v;
    for (int64_t i = 0; i < n; ++i) v[i] = from[i * step];
    return v;
  }
};

// columns[q] of the elements at q in all rows that the windows of output row i meet; `empty` where they meet none.
template <class T, class F>
void join_rows(const Window& w, const T* x, int64_t i, F join, Computed<T> empty, Computed<T>* columns) {
  using Of = Vectors<T>;
  int64_t first = 0, end = w.h.kernel;
  while (first < end && w.h.place(i, first) < 0) ++first;
  while (first < end && w.h.place(i, end - 1) >= w.h.in) --end;
  const int64_t rows = end - first, size = w.w.in, stride = w.w.stride, next = w.h.dilation * w.h.stride;
  const T* const line = x + (rows ? w.h.place(i, first) * w.h.stride : 0);
  const auto row_by_row = [&](auto step) {
    for (int64_t q = 0; q < size; ++q) columns[q] = rows ? wide(line[q * step]) : empty;
    for (int64_t r = 1; r < rows; ++r)
      for (int64_t q = 0; q < size; ++q) columns[q] = join(columns[q], wide(line[r * next + q * step]));
  };
  if (stride != 1) return row_by_row(stride);
  // Rows of 8 bytes an element that come from memory took twice as long side by side as one after the other.
  if (!rows || size < Of::n || sizeof(T) == 8) return row_by_row(std::integral_constant<int64_t, 1>());
  for (int64_t q = 0; q < size; q += Of::n) {
    if (q > size - Of::n) q = size - Of::n;  // the last ones overlap
    auto v = Of::load(line + q);
    for (int64_t r = 1; r < rows; ++r) v = join(v, Of::load(line + r * next + q));
    Of::store(v, columns + q);
  }
}

// A row of the output from joined rows, which begin with the padding.
template <class T, class F, class G>
void join_columns(const Side& w, const Computed<T>* columns, F join, G finish, T* y) {
  using Of = Vectors<T>;
  for (int64_t j = 0; j < w.out; j += Of::n) {
    if (w.out >= Of::n && j > w.out - Of::n) j = w.out - Of::n;  // the last ones overlap
    const auto* const from = columns + j * w.step;
    auto v = Of::every(w.step, from);
    for (int64_t b = 1; b < w.kernel; ++b) v = join(v, Of::every(w.step, from + b * w.dilation));
    v = finish(v, j);
    if (w.out >= Of::n) Of::store(v, y + j);
    else {
      T part[Of::n];
      Of::store(v, part);
      for (int64_t k = 0; k < w.out; ++k) y[k] = part[k];
    }
  }
}

// Windows as rows of joined rows: join(join(a, b), c) of vectors and of single elements, with `empty` where there
// is padding; then finish(vector of the output, its row, its column).
template <class T, class F, class G>
dvt_status pool(const dvt_call* c, const Window& w, Computed<T> empty, F join, G finish) {
  using C = Computed<T>;
  const T* const x = dvt::data<const T>(c->in[0]);
  T* const y = dvt::data<T>(c->out[0]);
  const int64_t size = w.h.out * w.w.out, work = size * w.h.kernel * w.w.kernel + 1;
  const int64_t read = (round_up(w.w.out, Vectors<T>::n) + Vectors<T>::n) * w.w.step + w.w.kernel * w.w.dilation;
  const int64_t width = most(read, w.w.padding + w.w.in);
  std::atomic<bool> complete{true};
  dvt::parallel_for(
      uint64_t(w.images * w.channels), uint64_t(32768 / work + 1), [&](uint64_t begin, uint64_t end, uint32_t) {
        C* const columns = static_cast<C*>(scratch(Scratch::result, size_t(width) * sizeof(C)));
        if (!columns) return complete.store(false, std::memory_order_relaxed);
        for (int64_t q = 0; q < width; ++q) columns[q] = empty;
        for (int64_t i = int64_t(begin); i < int64_t(end); ++i) {
          const T* const plane = x + i / w.channels * w.image_stride + i % w.channels * w.channel_stride;
          for (int64_t row = 0; row < w.h.out; ++row) {
            join_rows(w, plane, row, join, empty, columns + w.w.padding);
            const auto finish_row = [&](auto v, int64_t j) { return finish(v, row, j); };
            join_columns(w.w, columns, join, finish_row, y + i * size + row * w.w.out);
          }
        }
      });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

template <class T>
dvt_status max_pool(dvt_device*, const dvt_call* c) {
  using C = Computed<T>;
  constexpr C least = std::is_floating_point_v<C> ? C(-__builtin_inff())
                      : C(-1) < C(0)              ? C(uint64_t{1} << (8 * sizeof(C) - 1))
                                                  : C(0);
  const auto join = [](auto a, auto b) {
    const auto more = b > a ? b : a;  // a if b is NaN
    return b == b ? more : b;
  };
  return pool<T>(c, Window(c, true), least, join, [](auto v, int64_t, int64_t) { return v; });
}

template <class T>
dvt_status avg_pool(dvt_device*, const dvt_call* c) {
  using C = Computed<T>;
  const Window w(c, false);
  const bool with_padding = dvt::Attrs(c).boolean(3, true);
  const int64_t n = round_up(w.w.out, Vectors<T>::n);
  C* const counts = static_cast<C*>(scratch(Scratch::partial_result, size_t(n) * sizeof(C)));
  if (!counts) return DVT_OOM;
  for (int64_t j = 0; j < n; ++j) counts[j] = C(with_padding || j >= w.w.out ? w.w.kernel : w.w.within(j));
  const auto join = [](auto a, auto b) { return a + b; };
  return pool<T>(c, w, 0, join, [&](auto v, int64_t i, int64_t j) {
    return v / (Vectors<T>::load(counts + j) * C(with_padding ? w.h.kernel : w.h.within(i)));
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
