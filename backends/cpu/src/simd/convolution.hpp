// A convolution of one or two spatial axes as one product per image and group: weights (outputs, taps) times the
// windows of x (taps, pixels). No window is copied. Some rows of x are, with their padding, as one plane for each
// place of a pixel within a step: there the windows of adjacent pixels are adjacent, so that a row of the matrix of
// windows is a plane from an offset on. Pixels are numbered along the planes' rows, which are a little longer than
// those of y; the sums of the pixels between are dropped.
#pragma once
#include <utility>

#include "chunks.hpp"
#include "simd/windows.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
template <class In>
struct Operands {
  const In *x, *weight, *bias;
  In* y;
};

// A part of y: rows and columns of some outputs of one image and group.
struct Block {
  int64_t image, group, output, outputs;
  int64_t row, rows, column, columns;
};

// One axis of the planes of `count` pixels, from pixel `first` on.
struct PlaneAxis {
  const Side& side;
  int64_t first, planes, size;

  PlaneAxis(const Side& s, int64_t begin, int64_t count) : side(s), first(begin) {
    int64_t a = s.step, b = s.dilation;
    while (b) a = std::exchange(b, a % b);
    planes = least(s.kernel, s.step / a);
    size = count + (s.kernel - 1) * s.dilation / s.step;
  }
  int64_t plane(int64_t k) const { return k % planes; }
  int64_t shift(int64_t k) const { return k * side.dilation / side.step; }
  // The element of x at place i of a plane.
  int64_t place(int64_t plane, int64_t i) const {
    return side.place(first + i, 0) + plane * side.dilation % side.step;
  }
  // Places [from, to) of a plane are within x.
  void within(int64_t plane, int64_t& from, int64_t& to) const {
    const int64_t begin = place(plane, 0);
    from = begin < 0 ? least(divide_up(-begin, side.step), size) : 0;
    to = begin < side.in ? most(least(divide_up(side.in - begin, side.step), size), from) : from;
  }
};

// The planes of some channels.
struct Planes {
  PlaneAxis h, w;
  int64_t size, of_channel;

  Planes(const Windows& c, const Block& b)
      : h(c.h, b.row, b.rows),
        w(c.w, b.column, b.columns),
        size(h.size * w.size),
        of_channel(size * h.planes * w.planes) {}

  // Copies the elements of x; the places of the padding must be 0 already.
  template <class In>
  void copy(const Windows& c, const In* x, int64_t channels, gemm::Accumulator<In>* out) const {
    for (int64_t channel = 0; channel < channels; ++channel, x += c.channel_stride)
      for (int64_t i = 0; i < h.planes; ++i)
        for (int64_t j = 0; j < w.planes; ++j) copy_plane(c, x, i, j, out), out += size;
  }
  // Where each tap's row of the matrix of windows begins.
  void list(const Windows& c, int64_t channels, int64_t* offset) const {
    for (int64_t channel = 0; channel < channels; ++channel)
      for (int64_t kh = 0; kh < c.h.kernel; ++kh)
        for (int64_t kw = 0; kw < c.w.kernel; ++kw)
          *offset++ = channel * of_channel + (h.plane(kh) * w.planes + w.plane(kw)) * size + h.shift(kh) * w.size +
                      w.shift(kw);
  }

 private:
  template <class In>
  void copy_plane(const Windows& c, const In* x, int64_t of_h, int64_t of_w, gemm::Accumulator<In>* out) const {
    int64_t top, bottom, from, to;
    h.within(of_h, top, bottom), w.within(of_w, from, to);
    const int64_t step = c.w.step * c.w.stride;
    for (int64_t i = top; i < bottom; ++i)
      copy_line(x + h.place(of_h, i) * c.h.stride + w.place(of_w, from) * c.w.stride, step, to - from,
                out + i * w.size + from);
  }
};

// How many channels are summed at once: their windows of a panel of pixels stay in the first cache.
template <class T>
int64_t channels_at_once(const Windows& c, const Planes& p) {
  constexpr int64_t first_cache = 24 << 10, second_cache = 256 << 10, taps = 1024;
  const int64_t places = c.h.kernel * c.w.kernel, lines = c.h.kernel * (64 + int64_t(sizeof(gemm::V<T>)) * 2);
  const int64_t wanted =
      least(least(first_cache / lines, taps / places), second_cache / most(p.of_channel * int64_t(sizeof(T)), 1));
  const int64_t steps = divide_up(c.channels, most(wanted, 1));
  return divide_up(c.channels, steps);
}

// Sums, `sums_row` apart, and the bias to y.
template <class In>
void put_block(const Windows& c, const Block& b, const gemm::Accumulator<In>* sums, int64_t sums_row, int64_t row,
               const In* bias, In* y) {
  using T = gemm::Accumulator<In>;
  for (int64_t o = 0; o < b.outputs; ++o, sums += sums_row, y += c.pixels) {
    const T added = bias ? gemm::load(bias[o]) : T(0);
    for (int64_t i = 0; i < b.rows; ++i) {
      const T* const from = sums + i * row;
      In* const to = y + i * c.w.out;
      for (int64_t j = 0; j < b.columns; ++j) to[j] = gemm::store<In>(from[j] + added);
    }
  }
}

// False: out of memory.
template <class In>
bool convolve_block(const Windows& c, const Operands<In>& t, const Block& b) {
  using T = gemm::Accumulator<In>;
  constexpr int64_t P = gemm::panel<T>, line = 64 / sizeof(T);
  const Planes planes(c, b);
  const int64_t places = c.h.kernel * c.w.kernel, channels = channels_at_once<T>(c, planes),
                taps = channels * places;
  const int64_t pixels = (b.rows - 1) * planes.w.size + b.columns, sums_row = round_up(pixels, P) + line;
  // Rows that map to the same cache lines are copied.
  const bool in_place = std::is_same_v<In, T> && c.taps * int64_t(sizeof(T)) % 4096;
  const int64_t weight_row = in_place ? c.taps : round_up(taps, line) + line;
  const auto memory = [](Scratch purpose, int64_t n) {
    return static_cast<T*>(scratch(purpose, size_t(n) * sizeof(T)));
  };
  T* const copies = memory(Scratch::operand_b, channels * planes.of_channel + 8 * P);
  T* const weights = memory(Scratch::operand_a, in_place ? 0 : b.outputs * weight_row);
  T* const sums = memory(Scratch::result, b.outputs * sums_row);
  auto* const offset = static_cast<int64_t*>(scratch(Scratch::kernel, size_t(taps) * sizeof(int64_t)));
  if (!copies || !weights || !sums || !offset) return false;
  planes.list(c, channels, offset);
  std::memset(copies, 0, size_t(channels * planes.of_channel + 8 * P) * sizeof(T));

  const int64_t output = b.group * c.outputs + b.output;
  const In* const x = t.x + b.image * c.image_stride + b.group * c.channels * c.channel_stride;
  for (int64_t first = 0; first < c.channels; first += channels) {
    const int64_t n = least(channels, c.channels - first), k = n * places;
    planes.copy(c, x + first * c.channel_stride, n, copies);
    const In* const from = t.weight + output * c.taps + first * places;
    for (int64_t o = 0; o < (in_place ? 0 : b.outputs); ++o)
      for (int64_t q = 0; q < k; ++q) weights[o * weight_row + q] = gemm::load(from[o * c.taps + q]);
    const T* const a = in_place ? reinterpret_cast<const T*>(from) : weights;
    gemm::multiply<T>(b.outputs, pixels, k, a, weight_row, 1, gemm::Shifted<T>{copies, offset}, sums, sums_row,
                      first != 0);
  }
  put_block(c, b, sums, sums_row, planes.w.size, t.bias ? t.bias + output : nullptr,
            t.y + (b.image * c.groups * c.outputs + output) * c.pixels + b.row * c.w.out + b.column);
  return true;
}

// y cut into blocks: some 64 outputs by some 512 pixels, fewer outputs by more; small where threads would have
// none.
struct BlockCut {
  int64_t outputs, rows, columns;  // of a block
  int64_t across, down, deep;      // blocks side by side

  explicit BlockCut(const Windows& c) {
    constexpr int64_t longest = 1024, most_outputs = 72;
    const int64_t pixels = c.outputs <= 4 ? 4096 : 512;
    const auto equal = [](int64_t n, int64_t of, int64_t& count) {
      count = most(divide_up(n, of), 1);
      return divide_up(n, count);
    };
    outputs = equal(c.outputs, most_outputs, deep);
    columns = equal(c.w.out, c.w.out <= longest ? longest : pixels, across);
    rows = equal(c.h.out, most(pixels / most(columns, 1), 1), down);
    const int64_t wanted = 2 * int64_t(dvt::host->num_threads(dvt::host)),
                  others = c.images * c.groups * deep * across;
    if (wanted > 2)
      while (others * down < wanted && rows > 1 && outputs * rows * columns * c.taps > 600'000)
        rows = equal(c.h.out, divide_up(rows, 2), down);
  }
  int64_t count(const Windows& c) const { return c.images * c.groups * deep * down * across; }
  Block block(const Windows& c, int64_t at) const {
    Block b{};
    const auto part = [](int64_t& at, int64_t count, int64_t size, int64_t total, int64_t& first, int64_t& n) {
      first = at % count * size, n = least(size, total - first), at /= count;
    };
    part(at, deep, outputs, c.outputs, b.output, b.outputs);
    part(at, across, columns, c.w.out, b.column, b.columns);
    part(at, down, rows, c.h.out, b.row, b.rows);
    b.group = at % c.groups, b.image = at / c.groups;
    return b;
  }
};

// y = the convolution of x, by blocks on the pool. `taps` of c is not 0.
template <class In>
dvt_status convolve(const Windows& c, const Operands<In>& t) {
  if (!c.images || !c.outputs || !c.pixels) return DVT_OK;
  const BlockCut cut(c);
  const int64_t work = cut.outputs * cut.rows * cut.columns * c.taps;
  return for_each_chunk(cut.count(c), uint64_t(300'000 / (work + 1) + 1),
                        [&](int64_t at) { return convolve_block(c, t, cut.block(c, at)); });
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
