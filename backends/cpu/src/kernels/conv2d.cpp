// conv2d, conv1d: our own products with windows of x, or oneDNN's.
#include <algorithm>

#include "chunks.hpp"
#include "isa.hpp"
#include "onednn.hpp"
#include "simd/convolution.hpp"
#include "temporary.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
// Zero channels: empty sums.
template <class In>
void fill_bias(const Windows& c, const In* bias, In* y) {
  const int64_t outputs = c.groups * c.outputs;
  for (int64_t i = 0; i < c.images * outputs; ++i, y += c.pixels)
    std::fill_n(y, c.pixels, bias ? bias[i % outputs] : gemm::store<In>(gemm::Accumulator<In>(0)));
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

// The chunks of work: rows of y or, if those are too few for the threads, panels of outputs.
template <class In>
struct Packed {
  static constexpr bool is_bfloat16 = std::is_same_v<In, bf16>;

  const Windows& c;
  onednn::Panels panels;
  int64_t rows, down;        // of a chunk; chunks below each other
  int64_t together, across;  // panels of a chunk; chunks side by side

  explicit Packed(const Windows& windows) : c(windows) {
    // Whatever the number of threads: by the height of a chunk oneDNN chooses how it adds up.
    constexpr int64_t elements = 1 << 17, wanted = 4;  // of x that a chunk needs; chunks
    rows = most(least(c.h.out, elements / most(c.channels * c.w.in * c.h.step, 1)), 1);
    while (c.images * c.groups * divide_up(c.h.out, rows) < wanted && rows > 4) rows = divide_up(rows, 2);
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
    constexpr int64_t outputs = 64;
    Convolver<In> convolve_block(c, t);
    for (int64_t i = 0; i < d.outputs; i += outputs)
      if (!convolve_block({image, group, o + i, least(outputs, d.outputs - i), row, d.out[0], 0, c.w.out}))
        return false;
    return true;
  }
};

Windows windows_of(const dvt_call* c) { return {*c->in[0], *c->in[1], *c->out[0], dvt::Attrs(c), 0}; }

template <class In>
dvt_status pack_size(dvt_device*, const dvt_call* call, uint32_t, uint64_t* size, uint64_t* layout) {
  const Windows c = windows_of(call);
  if (!c.taps) return DVT_UNSUPPORTED;
  Packed<In> packed(c);
  if (!packed.find()) return DVT_UNSUPPORTED;
  *size = uint64_t(c.groups) * packed.panels.size, *layout = packed.panels.layout;
  return DVT_OK;
}

template <class In>
dvt_status pack(dvt_device*, const dvt_call* call, uint32_t, const dvt_packed* to) {
  const Windows c = windows_of(call);
  Packed<In> packed(c);
  if (!packed.find()) return DVT_OOM;  // pack_size has found it
  return packed.pack(dvt::data<const In>(call->in[1]), static_cast<char*>(to->data));
}

template <class In>
dvt_status run(dvt_device*, const dvt_call* call) {
  const Windows c = windows_of(call);
  const In *const x = dvt::data<const In>(call->in[0]), *const weight = dvt::data<const In>(call->in[1]);
  const In* const bias = dvt::has_in(call, 2) ? dvt::data<const In>(call->in[2]) : nullptr;
  In* const y = dvt::data<In>(call->out[0]);
  if (!c.taps) return fill_bias(c, bias, y), DVT_OK;
  if constexpr (packable<In>)
    if (Packed<In> packed(c); packed.find()) {
      // Unpacked products round otherwise: weights that the host has not kept are packed for this call, so that the
      // bits do not depend on whether they were used before.
      const bool kept = call->packed && call->packed[1].data && call->packed[1].layout == packed.panels.layout;
      const Temporary own = kept ? Temporary() : Temporary(size_t(c.groups) * packed.panels.size);
      const char* const data = kept ? static_cast<const char*>(call->packed[1].data) : own.get();
      if (kept || (own && packed.pack(weight, own.get()) == DVT_OK))
        return for_each_chunk(c.images * c.groups * packed.down * packed.across, 1,
                              [&](int64_t at) { return packed.run({x, weight, bias, y}, data, at); });
    }
  return convolve<In>(c, {x, weight, bias, y});
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
