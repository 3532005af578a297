// conv2d, conv1d as one matrix product per image and group: weights (outputs, taps) times the windows of x
// (taps, pixels). The windows are copied into panels of a few pixels just before use, so only a tile of them
// exists at a time. Groups of one channel take no product.
#include <algorithm>

#include "chunks.hpp"
#include "isa.hpp"
#include "onednn.hpp"
#include "simd/gemm.hpp"
#include "temporary.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One spatial axis; a missing one has size 1.
struct Side {
  int64_t in = 1, out = 1, stride = 1, kernel = 1, step = 1, padding = 0, dilation = 1;
  static constexpr int64_t known = 16;
  int64_t first[known] = {}, last[known] = {1};  // outputs() of the first positions: divisions are slow

  void prepare() {
    for (int64_t k = 0; k < least(kernel, known); ++k) compute(k, first[k], last[k]);
  }
  // Outputs whose window meets x at position k of the kernel: [from, to).
  DOVETAIL_CPU_INLINE void outputs(int64_t k, int64_t& from, int64_t& to) const {
    if (k < known) from = first[k], to = last[k];
    else compute(k, from, to);
  }

 private:
  void compute(int64_t k, int64_t& from, int64_t& to) const {
    const int64_t shift = padding - k * dilation;  // in = out * step - shift
    from = shift > 0 ? divide_up(shift, step) : 0;
    to = least(out, in + shift > 0 ? divide_up(in + shift, step) : 0);
    if (to < from) to = from;
  }
};

struct Windows {
  Side h, w;
  int64_t images, groups, channels, outputs;  // channels and outputs of a group
  int64_t image_stride, channel_stride, taps, pixels;

  explicit Windows(const dvt_call* c) {
    const DLTensor &x = *c->in[0], &weight = *c->in[1], &y = *c->out[0];
    const dvt::Attrs a(c);
    groups = a.i64(3, 1);
    images = x.shape[0], channels = weight.shape[1], outputs = weight.shape[0] / groups;
    image_stride = x.strides[0], channel_stride = x.strides[1];
    const dvt::Ints step = a.i64s(0), padding = a.i64s(1), dilation = a.i64s(2);
    const auto side = [&](uint32_t i) {
      Side s;
      s.in = x.shape[i + 2], s.out = y.shape[i + 2], s.stride = x.strides[i + 2], s.kernel = weight.shape[i + 2];
      s.step = step[i], s.padding = padding[i], s.dilation = dilation[i];
      return s.prepare(), s;
    };
    if (x.ndim == 4) h = side(0);
    w = side(uint32_t(x.ndim - 3));
    taps = channels * h.kernel * w.kernel, pixels = h.out * w.out;
  }
};

// A row of `n` pixels from `x`, zero before a and from b on.
template <class In>
DOVETAIL_CPU_INLINE void copy_line(const In* x, int64_t step, int64_t a, int64_t b, int64_t n,
                                   gemm::Accumulator<In>* out) {
  constexpr int P = gemm::panel<gemm::Accumulator<In>>;
  if (step == 1 && a == 0 && b == P) {
    for (int q = 0; q < P; ++q) out[q] = gemm::load(x[q]);
    return;
  }
  for (int64_t q = 0; q < a; ++q) out[q] = 0;
  if (step == 1)
    for (int64_t q = a; q < b; ++q) out[q] = gemm::load(x[q]);
  else
    for (int64_t q = a; q < b; ++q) out[q] = gemm::load(x[q * step]);
  for (int64_t q = b; q < n; ++q) out[q] = 0;
}

// The windows of pixels [first, first + n), n <= P, in `count` channels from x on: out[channel][kh][kw][P].
template <class In>
void windows(const Windows& c, const In* x, int64_t count, int64_t first, int64_t n, gemm::Accumulator<In>* out) {
  constexpr int P = gemm::panel<gemm::Accumulator<In>>;
  const int64_t places = c.h.kernel * c.w.kernel;
  if (n < P)
    for (int64_t t = 0; t < count * places; ++t)
      for (int64_t p = n; p < P; ++p) out[t * P + p] = 0;
  for (int64_t p = 0, pixel = first; p < n;) {  // runs of pixels of one output row
    const int64_t i = pixel / c.w.out, j = pixel % c.w.out, run = least(n - p, c.w.out - j);
    for (int64_t kh = 0; kh < c.h.kernel; ++kh) {
      const int64_t row = i * c.h.step - c.h.padding + kh * c.h.dilation;
      for (int64_t kw = 0; kw < c.w.kernel; ++kw) {
        int64_t from, to;
        c.w.outputs(kw, from, to);
        const bool inside = row >= 0 && row < c.h.in;
        const int64_t a = inside ? least(most(from - j, 0), run) : run,
                      b = inside ? most(least(to - j, run), a) : run;
        const int64_t at = row * c.h.stride + (j * c.w.step - c.w.padding + kw * c.w.dilation) * c.w.stride;
        gemm::Accumulator<In>* to_line = out + (kh * c.w.kernel + kw) * P + p;
        for (int64_t channel = 0; channel < count; ++channel, to_line += places * P)
          copy_line(x + channel * c.channel_stride + at, c.w.step * c.w.stride, a, b, run, to_line);
      }
    }
    p += run, pixel += run;
  }
}

// Outputs [o, o + rows) of a group at pixels [first, first + n): y's rows are `pixels` apart.
template <class In>
bool tile(const Windows& c, const In* x, const In* weight, const In* bias, In* y, int64_t rows, int64_t first,
          int64_t n) {
  using T = gemm::Accumulator<In>;
  constexpr int P = gemm::panel<T>;
  constexpr bool converts = !std::is_same_v<In, T>;
  const int64_t places = c.h.kernel * c.w.kernel, steps = least(divide_up(c.taps, 768), c.channels);
  const int64_t step = divide_up(c.channels, steps) * places;  // whole channels
  T* const panels = static_cast<T*>(scratch(Scratch::operand_b, size_t(step * divide_up(n, P) * P) * sizeof(T)));
  T* const packed =
      static_cast<T*>(converts ? scratch(Scratch::operand_a, size_t(rows * step) * sizeof(T)) : nullptr);
  T* const sums = static_cast<T*>(converts ? scratch(Scratch::result, size_t(rows * n) * sizeof(T)) : nullptr);
  if (!panels || (converts && (!packed || !sums))) return false;
  T* to = sums;
  int64_t to_row = n;
  if constexpr (!converts) to = y, to_row = c.pixels;
  for (int64_t i = 0; bias && i < rows; ++i)
    for (int64_t j = 0; j < n; ++j) to[i * to_row + j] = gemm::load(bias[i]);
  for (int64_t t = 0; t < c.taps; t += step) {
    const int64_t count = least(step, c.taps - t);
    for (int64_t j = 0; j < n; j += P) {
      const In* const channels = x + t / places * c.channel_stride;
      windows(c, channels, count / places, first + j, least(P, n - j), panels + j * count);
    }
    const gemm::Panels<T> b{panels, count * P, P};
    if constexpr (converts) {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t q = 0; q < count; ++q) packed[i * count + q] = gemm::load(weight[i * c.taps + t + q]);
      gemm::multiply<T>(rows, n, count, packed, count, 1, b, to, to_row, t || bias);
    } else {
      gemm::multiply<T>(rows, n, count, weight + t, c.taps, 1, b, to, to_row, t || bias);
    }
  }
  if constexpr (converts)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j) y[i * c.pixels + j] = gemm::store<In>(sums[i * n + j]);
  return true;
}

// One channel to one output: each tap adds a shifted row.
template <class In>
bool depthwise(const Windows& c, const In* x, const In* weight, const In* bias, In* y) {
  using T = gemm::Accumulator<In>;
  T* const sums = static_cast<T*>(scratch(Scratch::result, size_t(c.w.out) * sizeof(T)));
  if (!sums) return false;
  const int64_t step = c.w.step * c.w.stride;
  for (int64_t i = 0; i < c.h.out; ++i, y += c.w.out) {
    const T start = bias ? gemm::load(*bias) : T(0);
    for (int64_t j = 0; j < c.w.out; ++j) sums[j] = start;
    for (int64_t kh = 0; kh < c.h.kernel; ++kh) {
      const int64_t row = i * c.h.step - c.h.padding + kh * c.h.dilation;
      if (row < 0 || row >= c.h.in) continue;
      for (int64_t kw = 0; kw < c.w.kernel; ++kw) {
        int64_t from, to;
        c.w.outputs(kw, from, to);
        const T factor = gemm::load(weight[kh * c.w.kernel + kw]);
        const In* const line = x + row * c.h.stride + (kw * c.w.dilation - c.w.padding) * c.w.stride;
        if (step == 1)
          for (int64_t j = from; j < to; ++j) sums[j] += factor * gemm::load(line[j]);
        else
          for (int64_t j = from; j < to; ++j) sums[j] += factor * gemm::load(line[j * step]);
      }
    }
    for (int64_t j = 0; j < c.w.out; ++j) y[j] = gemm::store<In>(sums[j]);
  }
  return true;
}

// Zero channels: empty sums.
template <class In>
void fill_bias(const Windows& c, const In* bias, In* y) {
  const int64_t outputs = c.groups * c.outputs;
  for (int64_t i = 0; i < c.images * outputs; ++i, y += c.pixels)
    std::fill_n(y, c.pixels, bias ? bias[i % outputs] : gemm::store<In>(gemm::Accumulator<In>(0)));
}

// Outputs [o, o + rows) at pixels [first, first + n) of one image and group.
template <class In>
bool chunk(const Windows& c, const In* x, const In* weight, const In* bias, In* y, int64_t image, int64_t group,
           int64_t o, int64_t rows, int64_t first, int64_t n) {
  const int64_t output = group * c.outputs + o;
  x += image * c.image_stride + group * c.channels * c.channel_stride;
  weight += output * c.taps;
  if (bias) bias += output;
  y += (image * c.groups * c.outputs + output) * c.pixels + first;
  if (c.channels == 1 && c.outputs == 1) return depthwise(c, x, weight, bias, y);
  return tile(c, x, weight, bias, y, rows, first, n);
}

// ---- weights packed for oneDNN

// bfloat16 where the processor multiplies it. On aarch64 float32 too, where oneDNN has SVE code: it makes one
// long sum, whose rounding errors the schema allows (`dot_slack`), as for OpenBLAS's products.
#if defined(__aarch64__)
template <class T>
inline constexpr bool packable = std::is_same_v<T, bf16> || std::is_same_v<T, float>;
#else
template <class T>
inline constexpr bool packable = std::is_same_v<T, bf16>;
#endif

template <class In>
struct Operands {
  const In *x, *weight, *bias;
  In* y;
};

// The chunks of work: rows of y or, if those are too few for the threads, panels of outputs.
template <class In>
struct Packed {
  static constexpr bool is_bfloat16 = std::is_same_v<In, bf16>;

  const Windows& c;
  onednn::Panels panels;
  int64_t rows, down;        // of a chunk; chunks below each other
  int64_t together, across;  // panels of a chunk; chunks side by side

  explicit Packed(const Windows& windows) : c(windows) {
    constexpr int64_t elements = 1 << 17;  // of x that a chunk needs
    rows = most(least(c.h.out, elements / most(c.channels * c.w.in * c.h.step, 1)), 1);
    while (too_few(divide_up(c.h.out, rows)) && rows > 4) rows = divide_up(rows, 2);
    down = most(divide_up(c.h.out, rows), 1), rows = divide_up(c.h.out, down);
  }
  // False if oneDNN must not serve it. It multiplies bfloat16 in pairs of channels: it pairs the last of an
  // odd number with the next pixel's first, times 0, which spreads an infinity of that pixel.
  bool find() {
    if (c.channels < 8 || c.outputs < 8 || !c.pixels) return false;
    if (is_bfloat16 && (c.channels % 2 || !onednn::fast_bfloat16())) return false;
    if (!onednn::panels(describe(0), panels)) return false;
    together = too_few(down) ? 1 : panels.count;
    across = divide_up(panels.count, together);
    return true;
  }
  bool too_few(int64_t chunks) const {
    return c.images * c.groups * chunks < 2 * int64_t(dvt::host->num_threads(dvt::host));
  }

  onednn::Convolution describe(int64_t row) const {
    onednn::Convolution d{};
    d.channels = c.channels, d.outputs = c.outputs, d.type = is_bfloat16 ? dvt::bf16 : dvt::f32;
    d.x_channel = c.channel_stride, d.y_output = c.pixels;
    const auto side = [&](int i, const Side& s, int64_t first, int64_t count) {
      const int64_t from = first * s.step - s.padding,
                    to = from + (count - 1) * s.step + (s.kernel - 1) * s.dilation + 1;
      d.out[i] = count, d.kernel[i] = s.kernel, d.step[i] = s.step, d.dilation[i] = s.dilation, d.x[i] = s.stride;
      d.before[i] = most(-from, 0), d.after[i] = most(to - s.in, 0);
      d.in[i] = to - from - d.before[i] - d.after[i];
    };
    side(0, c.h, row, least(rows, c.h.out - row)), side(1, c.w, 0, c.w.out);
    d.y[0] = c.w.out, d.y[1] = 1, d.like[0] = rows, d.like[1] = c.w.out;
    return d;
  }

  dvt_status pack(const In* weight, char* to) const {
    return for_each_chunk(c.groups * panels.count, 1,
                          [&](int64_t at) { return pack(weight, to, at / panels.count, at % panels.count); });
  }
  bool pack(const In* weight, char* to, int64_t group, int64_t panel) const {
    onednn::Convolution one = describe(0);
    const int64_t o = panel * panels.columns;
    one.outputs = least(panels.columns, c.outputs - o);
    to += uint64_t(group) * panels.size + uint64_t(panel) * panels.bytes;
    return onednn::pack_panel(one, weight + (group * c.outputs + o) * c.taps, to);
  }

  bool run(const Operands<In>& t, const char* data, int64_t at) const {
    const int64_t panel = at % across * together, row = at / across % down * rows,
                  group = at / across / down % c.groups, image = at / across / down / c.groups,
                  o = panel * panels.columns, output = group * c.outputs + o;
    onednn::Convolution d = describe(row);
    d.outputs = least(together * panels.columns, c.outputs - o), d.bias = t.bias != nullptr;
    const In* const x = t.x + image * c.image_stride + group * c.channels * c.channel_stride +
                        most(row * c.h.step - c.h.padding, 0) * c.h.stride;
    data += uint64_t(group) * panels.size + uint64_t(panel) * panels.bytes;
    In* const y = t.y + (image * c.groups * c.outputs + output) * c.pixels + row * c.w.out;
    if (d.in[0] > 0 && d.in[1] > 0 && onednn::convolve(d, panels, x, data, t.bias ? t.bias + output : nullptr, y))
      return true;
    constexpr int64_t outputs = 256, pixels = 512;
    const int64_t end = (row + d.out[0]) * c.w.out;
    for (int64_t i = 0; i < d.outputs; i += outputs)
      for (int64_t first = row * c.w.out; first < end; first += pixels)
        if (!chunk(c, t.x, t.weight, t.bias, t.y, image, group, o + i, least(outputs, d.outputs - i), first,
                   least(pixels, end - first)))
          return false;
    return true;
  }
};

template <class In>
dvt_status pack_size(dvt_device*, const dvt_call* call, uint32_t, uint64_t* size, uint64_t* layout) {
  const Windows c(call);
  if (!c.taps) return DVT_UNSUPPORTED;
  Packed<In> packed(c);
  if (!packed.find()) return DVT_UNSUPPORTED;
  *size = uint64_t(c.groups) * packed.panels.size, *layout = packed.panels.layout;
  return DVT_OK;
}

template <class In>
dvt_status pack(dvt_device*, const dvt_call* call, uint32_t, const dvt_packed* to) {
  const Windows c(call);
  Packed<In> packed(c);
  if (!packed.find()) return DVT_OOM;  // pack_size has found it
  return packed.pack(dvt::data<const In>(call->in[1]), static_cast<char*>(to->data));
}

template <class In>
dvt_status run(dvt_device*, const dvt_call* call) {
  constexpr int P = gemm::panel<gemm::Accumulator<In>>;
  const Windows c(call);
  const In *const x = dvt::data<const In>(call->in[0]), *const weight = dvt::data<const In>(call->in[1]);
  const In* const bias = dvt::has_in(call, 2) ? dvt::data<const In>(call->in[2]) : nullptr;
  In* const y = dvt::data<In>(call->out[0]);
  if (!c.taps) return fill_bias(c, bias, y), DVT_OK;
  if constexpr (packable<In>)
    if (Packed<In> packed(c); packed.find()) {
      // Unpacked products round otherwise: weights that the host has not kept are packed for this call, so that the
      // bits do not depend on whether they were used before.
      const bool kept = call->packed && call->packed[1].data && call->packed[1].layout == packed.panels.layout;
      const Temporary own = kept ? nullptr : temporary(size_t(c.groups) * packed.panels.size);
      const char* const data = kept ? static_cast<const char*>(call->packed[1].data) : own.get();
      if (kept || (own && packed.pack(weight, own.get()) == DVT_OK))
        return for_each_chunk(c.images * c.groups * packed.down * packed.across, 1,
                              [&](int64_t at) { return packed.run({x, weight, bias, y}, data, at); });
    }
  const bool single = c.channels == 1 && c.outputs == 1;
  // A tile: up to 256 outputs, and as many pixels as leave enough tiles for the threads.
  const int64_t rows = single ? 1 : least(c.outputs, 256), down = divide_up(c.outputs, rows);
  const int64_t threads = int64_t(dvt::host->num_threads(dvt::host)), others = c.images * c.groups * down;
  int64_t columns = single ? c.pixels : least(c.pixels, 512);
  const auto work = [&] { return rows * columns * c.taps; };
  while (!single && others * divide_up(c.pixels, columns) < 2 * threads && columns > 2 * P && work() > 600'000)
    columns = divide_up(columns / 2, P) * P;
  const int64_t across = divide_up(c.pixels, columns);
  return for_each_chunk(others * across, uint64_t(300'000 / (work() + 1) + 1), [&](int64_t at) {
    const int64_t first = at % across * columns, o = at / across % down * rows;
    return chunk(c, x, weight, bias, y, at / across / down / c.groups, at / across / down % c.groups, o,
                 least(rows, c.outputs - o), first, least(columns, c.pixels - first));
  });
}

template <class T>
void add(Table& table, DLDataType type) {
  for (const char* op : {"dvt.conv2d", "dvt.conv1d"}) {
    dvt::Row row(op, run<T>);
    row.in(type, DVT_O_STRIDED).in(type, packable<T> ? DVT_O_PACKABLE : 0).in(type, DVT_O_OPTIONAL).out(type);
    if constexpr (packable<T>) row.pack(pack_size<T>, pack<T>);
    if (std::is_same_v<T, bf16> && may_multiply_bfloat16()) row.flags(DVT_K_FLUSHES_SUBNORMALS);
    table.add(row.kernel());
  }
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<bf16>(table, dvt::bf16);
  add<f16>(table, dvt::f16);
  for (DLDataType t : {dvt::i8, dvt::u8}) add<uint8_t>(table, t);
  for (DLDataType t : {dvt::i16, dvt::u16}) add<uint16_t>(table, t);
  for (DLDataType t : {dvt::i32, dvt::u32}) add<uint32_t>(table, t);
  for (DLDataType t : {dvt::i64, dvt::u64}) add<uint64_t>(table, t);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
