// max_pool_grad, avg_pool_grad of one to three spatial axes: image by image, where windows may overlap, and in it
// tap by tap over rows of places.
#include <algorithm>
#include <atomic>

#include "kernel.hpp"
#include "side.hpp"
#include "simd/rows.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
using namespace rows;
constexpr int kAxes = 3;

struct Windows {
  Side side[kAxes];
  int64_t images, elements = 1, places = 1, taps = 1;
  bool counts_padding = true;

  // x and out: of all axes. The attributes from `first` on are kernel_size, stride, padding, and dilation or
  // count_include_pad.
  Windows(const dvt_call* c, const DLTensor& x, const DLTensor& out, uint32_t first, bool dilates) {
    const dvt::Attrs a(c);
    images = x.shape[0] * x.shape[1];
    for (int i = 2; i < x.ndim; ++i) {
      Side& s = side[kAxes - x.ndim + i];
      const uint32_t k = uint32_t(i - 2);
      s.in = x.shape[i], s.out = out.shape[i];
      s.kernel = a.i64s(first)[k], s.step = a.i64s(first + 1)[k], s.padding = a.i64s(first + 2)[k];
      if (dilates) s.dilation = a.i64s(first + 3)[k];
      s.prepare();
      elements *= s.in, places *= s.out, taps *= s.kernel;
    }
    if (!dilates) counts_padding = a.boolean(first + 3);
  }

  // f(number of the tap, element of the first place, first place, end of the places) for each tap of a row of
  // places that is within x.
  template <class F>
  DOVETAIL_CPU_INLINE void each_tap(int64_t a, int64_t b, F f) const {
    const Side& last = side[2];
    for (int64_t i = 0; i < side[0].kernel; ++i)
      for (int64_t j = 0; j < side[1].kernel; ++j) {
        const int64_t y = side[0].place(a, i), z = side[1].place(b, j);
        if (y < 0 || y >= side[0].in || z < 0 || z >= side[1].in) continue;
        const int64_t line = (y * side[1].in + z) * last.in;
        for (int64_t k = 0; k < last.kernel; ++k) {
          int64_t from, to;
          last.outputs(k, from, to);
          f((i * side[1].kernel + j) * last.kernel + k, line + last.place(0, k), from, to);
        }
      }
  }
};

// Of a row of places: the largest elements so far, of which tap each is, and for each tap its element of the first
// place.
template <class T>
struct Largest {
  T* value;
  int32_t* tap;
  int64_t* first;
};

// To the first of the largest elements; NaN is the largest.
template <class T>
void spread_to_largest(const Windows& w, const T* x, const T* grad, T* out, const Largest<T>& best) {
  const int64_t n = w.side[2].out, step = w.side[2].step;
  for (int64_t a = 0; a < w.side[0].out; ++a)
    for (int64_t b = 0; b < w.side[1].out; ++b, grad += n) {
      for (int64_t d = 0; d < n; ++d) best.value[d] = -T(__builtin_inf()), best.tap[d] = -1;
      w.each_tap(a, b, [&](int64_t tap, int64_t first, int64_t from, int64_t to) {
        best.first[tap] = first;
        DOVETAIL_CPU_INDEPENDENT
        for (int64_t d = from; d < to; ++d) {
          const T v = x[first + d * step], before = best.value[d];
          const bool wins = (best.tap[d] < 0) | (v > before) | ((v != v) & (before == before));
          best.value[d] = wins ? v : before;
          best.tap[d] = wins ? int32_t(tap) : best.tap[d];
        }
      });
      for (int64_t d = 0; d < n; ++d)
        if (best.tap[d] >= 0) out[best.first[best.tap[d]] + d * step] += grad[d];
    }
}

// Two by two elements in each window, side by side: each row of places is a loop over pairs of two lines.
bool are_pairs(const Windows& w) {
  const auto is = [](const Side& s, int64_t n) {
    return s.kernel == n && s.step == n && s.padding == 0 && (s.dilation == 1 || n == 1) && n * s.out <= s.in;
  };
  return is(w.side[0], 1) && is(w.side[1], 2) && is(w.side[2], 2);
}

// `yes` where v is larger than what is the largest so far, or the first NaN. Compilers make vectors of it.
template <class T>
T if_larger(T v, T largest, T yes, T no) {
  const T unless_nan = largest == largest ? yes : no;
  return v <= largest ? no : unless_nan;
}

// Writes every element of the windows; `out` is 0 elsewhere.
template <class T>
void spread_over_pairs(const Windows& w, const T* x, const T* grad, T* out) {
  const int64_t n = w.side[2].out, line = w.side[2].in, last = w.side[1].in - 2 * w.side[1].out;
  constexpr T zero = 0;
  for (int64_t a = 0; a < w.side[0].out; ++a, x += last * line, out += last * line)
    for (int64_t b = 0; b < w.side[1].out; ++b, x += 2 * line, out += 2 * line, grad += n) {
      DOVETAIL_CPU_INDEPENDENT
      for (int64_t d = 0; d < n; ++d) {
        const T p = x[2 * d], q = x[2 * d + 1], r = x[line + 2 * d], s = x[line + 2 * d + 1], g = grad[d];
        const T above = if_larger(q, p, q, p), below = if_larger(s, r, s, r);
        const T of_above = if_larger(below, above, zero, g), of_below = if_larger(below, above, g, zero);
        out[2 * d] = if_larger(q, p, zero, of_above);
        out[2 * d + 1] = if_larger(q, p, of_above, zero);
        out[line + 2 * d] = if_larger(s, r, zero, of_below);
        out[line + 2 * d + 1] = if_larger(s, r, of_below, zero);
      }
    }
}

template <class T>
void spread_evenly(const Windows& w, const T* grad, T* out, T* share) {
  const int64_t n = w.side[2].out, step = w.side[2].step;
  for (int64_t a = 0; a < w.side[0].out; ++a)
    for (int64_t b = 0; b < w.side[1].out; ++b, grad += n) {
      const int64_t lines = w.side[0].within(a) * w.side[1].within(b);
      for (int64_t d = 0; d < n; ++d)
        share[d] = grad[d] / T(w.counts_padding ? w.taps : lines * w.side[2].within(d));
      w.each_tap(a, b, [&](int64_t, int64_t first, int64_t from, int64_t to) {
        DOVETAIL_CPU_INDEPENDENT
        for (int64_t d = from; d < to; ++d) out[first + d * step] += share[d];
      });
    }
}

template <class In, bool largest>
dvt_status run(dvt_device*, const dvt_call* c) {
  using T = Computed<In>;
  const DLTensor& result = *c->out[0];
  const DLTensor& of_places = *c->in[largest ? 1 : 0];
  const Windows w(c, result, of_places, largest ? 0 : 1, largest);
  const In *const x = dvt::data<const In>(c->in[0]), *const grad = dvt::data<const In>(&of_places);
  In* const out = dvt::data<In>(&result);
  const bool in_pairs = largest && are_pairs(w), all_in_pairs = in_pairs && w.elements == 4 * w.places;
  const int64_t row = w.side[2].out, wide = is_half<In> ? 2 * w.elements + w.places : 0;
  std::atomic<bool> complete{true};
  const uint64_t grain = 16384 / uint64_t(w.places * w.taps + 1) + 1;
  dvt::parallel_for(uint64_t(w.images), grain, [&](uint64_t begin, uint64_t end, uint32_t) {
    const size_t bytes = size_t(w.taps) * 8 + size_t(wide + row) * sizeof(T) + size_t(row) * 4;
    void* const memory = scratch(Scratch::kernel, bytes);
    if (!memory) return complete.store(false, std::memory_order_relaxed);
    int64_t* const of_taps = static_cast<int64_t*>(memory);
    T *const buffer = reinterpret_cast<T*>(of_taps + w.taps), *const of_row = buffer + wide;
    for (int64_t image = int64_t(begin); image < int64_t(end); ++image) {
      const T* const g = widened(grad + image * w.places, 1, w.places, buffer);
      T* to;
      if constexpr (is_half<In>) to = buffer + w.places;
      else to = out + image * w.elements;
      if (!all_in_pairs) std::fill(to, to + w.elements, T(0));
      if constexpr (largest) {
        const T* const from = widened(x + image * w.elements, 1, w.elements, buffer + w.places + w.elements);
        if (in_pairs) spread_over_pairs(w, from, g, to);
        else spread_to_largest(w, from, g, to, {of_row, reinterpret_cast<int32_t*>(of_row + row), of_taps});
      } else {
        spread_evenly(w, g, to, of_row);
      }
      if constexpr (is_half<In>) put_row(to, out + image * w.elements, 1, w.elements);
    }
  });
  return complete.load(std::memory_order_relaxed) ? DVT_OK : DVT_OOM;
}

template <class T>
void add(Table& table, DLDataType type) {
  table.add(dvt::Row("dvt.max_pool_grad", run<T, true>).in(type).in(type).out(type).deterministic().kernel());
  table.add(dvt::Row("dvt.avg_pool_grad", run<T, false>).in(type).out(type).deterministic().kernel());
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
