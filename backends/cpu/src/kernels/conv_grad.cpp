// conv_grad_input, conv_grad_weight of one or two spatial axes: products with the matrix of all windows of x (taps,
// pixels), of which a block of channels and pixels exists at a time. No two chunks of work add to one element, so
// the number of threads does not show in the results.
#include <algorithm>

#include "chunks.hpp"
#include "simd/convolution.hpp"
#include "temporary.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
namespace {
// The blocks of a group's channels: a chunk of work each.
struct Blocks {
  int64_t channels, count;
  Blocks(const Windows& c, int64_t others) {
    constexpr int64_t least_taps = 48;  // to be worth the packing of grad for each block
    const int64_t places = c.h.kernel * c.w.kernel, smallest = divide_up(least_taps, places);
    const int64_t wanted = 4 * int64_t(dvt::host->num_threads(dvt::host)) / most(others, 1) + 1;
    channels = most(divide_up(c.channels, wanted), least(smallest, c.channels));
    channels = least(channels, most(4096 / places, 1));
    count = divide_up(c.channels, channels);
  }
};

// Rows of pixels that make up a block of the windows' matrix: few enough for a core's cache.
int64_t rows_of_block(const Windows& c, int64_t taps) {
  constexpr int64_t elements = 1 << 15, pixels = 32;
  return most(least(most(elements / most(taps, 1), pixels) / most(c.w.out, 1), c.h.out), 1);
}

// f(tap of the block, place in x, columns [from, to), row of the block) of each row of pixels [first, first + rows)
// that a tap sees; inside says whether any of it is within x.
template <class F>
DOVETAIL_CPU_INLINE void each_line(const Windows& c, int64_t channels, int64_t first, int64_t rows, F f) {
  for (int64_t channel = 0, tap = 0; channel < channels; ++channel)
    for (int64_t kh = 0; kh < c.h.kernel; ++kh)
      for (int64_t kw = 0; kw < c.w.kernel; ++kw, ++tap) {
        int64_t from, to;
        c.w.outputs(kw, from, to);
        for (int64_t i = 0; i < rows; ++i) {
          const int64_t row = (first + i) * c.h.step - c.h.padding + kh * c.h.dilation;
          const bool inside = row >= 0 && row < c.h.in;
          const int64_t at = (channel * c.h.in + row) * c.w.in + kw * c.w.dilation - c.w.padding;
          f(tap, at, inside ? from : 0, inside ? to : 0, i);
        }
      }
}

// ---- by the weight

// The gradients by the weights of a block of channels of one group.
template <class In>
bool by_weight(const Windows& c, const In* x, const In* grad, In* out, int64_t group, int64_t channel,
               int64_t channels) {
  using T = gemm::Accumulator<In>;
  constexpr int P = gemm::panel<T>;
  const int64_t taps = channels * c.h.kernel * c.w.kernel, rows = rows_of_block(c, taps), n = rows * c.w.out;
  T* const columns = static_cast<T*>(scratch(Scratch::operand_a, size_t(taps * n) * sizeof(T)));
  T* const panels =
      static_cast<T*>(scratch(Scratch::operand_b, size_t(gemm::packed_size(n, c.outputs, P)) * sizeof(T)));
  T* const sums = static_cast<T*>(scratch(Scratch::result, size_t(taps * c.outputs) * sizeof(T)));
  if (!columns || !panels || !sums) return false;
  bool add = false;
  for (int64_t image = 0; image < c.images; ++image)
    for (int64_t first = 0; first < c.h.out; first += rows, add = true) {
      const int64_t count = least(rows, c.h.out - first), pixels = count * c.w.out;
      const In* const from_x = x + image * c.image_stride + (group * c.channels + channel) * c.channel_stride;
      each_line(c, channels, first, count, [&](int64_t tap, int64_t at, int64_t from, int64_t to, int64_t i) {
        copy_line(from_x + at, c.w.step, from, to, c.w.out, columns + tap * n + i * c.w.out);
      });
      const In* const g = grad + (image * c.groups + group) * c.outputs * c.pixels + first * c.w.out;
      gemm::pack(pixels, c.outputs, g, 1, c.pixels, P, panels);
      gemm::multiply<T>(taps, c.outputs, pixels, columns, n, 1, {panels, pixels * P, P}, sums, c.outputs, add);
    }
  out += group * c.outputs * c.taps + channel * c.h.kernel * c.w.kernel;
  for (int64_t o = 0; o < c.outputs; ++o)
    for (int64_t t = 0; t < taps; ++t) out[o * c.taps + t] = gemm::store<In>(add ? sums[t * c.outputs + o] : T(0));
  return true;
}

template <class In>
dvt_status run_by_weight(dvt_device*, const dvt_call* call) {
  const Windows c(*call->in[0], *call->out[0], *call->in[1], dvt::Attrs(call), 1);
  const In *const x = dvt::data<const In>(call->in[0]), *const grad = dvt::data<const In>(call->in[1]);
  In* const out = dvt::data<In>(call->out[0]);
  const Blocks blocks(c, c.groups);
  return for_each_chunk(c.groups * blocks.count, 1, [&](int64_t at) {
    const int64_t channel = at % blocks.count * blocks.channels;
    return by_weight(c, x, grad, out, at / blocks.count, channel, least(blocks.channels, c.channels - channel));
  });
}

// ---- by the input

// The gradients by a block of channels of one image and group.
template <class In>
bool by_input(const Windows& c, const In* weight, const In* grad, In* out, int64_t image, int64_t group,
              int64_t channel, int64_t channels) {
  using T = gemm::Accumulator<In>;
  constexpr int P = gemm::panel<T>;
  const int64_t places = c.h.kernel * c.w.kernel, taps = channels * places, elements = channels * c.h.in * c.w.in;
  const int64_t rows = rows_of_block(c, taps), n = rows * c.w.out;
  T* const columns = static_cast<T*>(scratch(Scratch::operand_a, size_t(taps * n) * sizeof(T)));
  T* const panels =
      static_cast<T*>(scratch(Scratch::operand_b, size_t(gemm::packed_size(c.outputs, n, P)) * sizeof(T)));
  T* const factors = static_cast<T*>(scratch(Scratch::partial_result, size_t(c.outputs * taps) * sizeof(T)));
  out += ((image * c.groups + group) * c.channels + channel) * c.h.in * c.w.in;
  T* sums;
  if constexpr (std::is_same_v<In, T>) sums = out;
  else sums = static_cast<T*>(scratch(Scratch::result, size_t(elements) * sizeof(T)));
  if (!columns || !panels || !factors || !sums) return false;
  std::fill_n(sums, elements, T(0));
  weight += group * c.outputs * c.taps + channel * places;
  for (int64_t o = 0; o < c.outputs; ++o)
    for (int64_t t = 0; t < taps; ++t) factors[o * taps + t] = gemm::load(weight[o * c.taps + t]);
  for (int64_t first = 0; c.outputs && first < c.h.out; first += rows) {
    const int64_t count = least(rows, c.h.out - first), pixels = count * c.w.out;
    const In* const g = grad + (image * c.groups + group) * c.outputs * c.pixels + first * c.w.out;
    gemm::pack(c.outputs, pixels, g, c.pixels, 1, P, panels);
    gemm::multiply<T>(taps, pixels, c.outputs, factors, 1, taps, {panels, c.outputs * P, P}, columns, n, false);
    each_line(c, channels, first, count, [&](int64_t tap, int64_t at, int64_t from, int64_t to, int64_t i) {
      const T* const line = columns + tap * n + i * c.w.out;
      T* const to_x = sums + at;
      if (c.w.step == 1)
        for (int64_t j = from; j < to; ++j) to_x[j] += line[j];
      else
        for (int64_t j = from; j < to; ++j) to_x[j * c.w.step] += line[j];
    });
  }
  if constexpr (!std::is_same_v<In, T>)
    for (int64_t i = 0; i < elements; ++i) out[i] = gemm::store<In>(sums[i]);
  return true;
}

// Where windows move by 1, x's gradient is a convolution of grad with the weights flipped: (groups, channels,
// outputs, kernel).
template <class In>
dvt_status convolve_gradient(const Windows& c, const In* weight, const In* grad, In* out) {
  const int64_t places = c.h.kernel * c.w.kernel;
  const Temporary memory(size_t(c.groups * c.outputs * c.taps) * sizeof(In));
  if (!memory) return DVT_OOM;
  In* to = reinterpret_cast<In*>(memory.get());
  for (int64_t group = 0; group < c.groups; ++group, weight += c.outputs * c.taps)
    for (int64_t channel = 0; channel < c.channels; ++channel)
      for (int64_t o = 0; o < c.outputs; ++o)
        for (int64_t k = places; k-- > 0;) *to++ = weight[o * c.taps + channel * places + k];
  return convolve<In>(c.of_gradient(), {grad, reinterpret_cast<In*>(memory.get()), nullptr, out});
}

template <class In>
dvt_status run_by_input(dvt_device*, const dvt_call* call) {
  const Windows c(*call->out[0], *call->in[0], *call->in[1], dvt::Attrs(call), 1);
  const In *const weight = dvt::data<const In>(call->in[0]), *const grad = dvt::data<const In>(call->in[1]);
  In* const out = dvt::data<In>(call->out[0]);
  if (c.h.step == 1 && c.w.step == 1 && c.outputs && c.taps) return convolve_gradient(c, weight, grad, out);
  const int64_t others = c.images * c.groups;
  const Blocks blocks(c, others);
  return for_each_chunk(others * blocks.count, 1, [&](int64_t at) {
    const int64_t channel = at % blocks.count * blocks.channels, matrix = at / blocks.count;
    return by_input(c, weight, grad, out, matrix / c.groups, matrix % c.groups, channel,
                    least(blocks.channels, c.channels - channel));
  });
}

dvt_status query(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  if (c->in[0]->ndim > 4) {
    DVT_PUT(answer, dvt_answer, reason, "there are three spatial axes");
    return DVT_UNSUPPORTED;
  }
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  return DVT_OK;
}

template <class T>
void add(Table& table, DLDataType type) {
  const auto row = [&](const char* op, auto* run) {
    table.add(dvt::Row(op, run).in(type).in(type).out(type).deterministic().query(query).kernel());
  };
  row("dvt.conv_grad_input", run_by_input<T>);
  row("dvt.conv_grad_weight", run_by_weight<T>);
}
}  // namespace

void DOVETAIL_CPU_ROWS(Table& table) {
  add<float>(table, dvt::f32);
  add<double>(table, dvt::f64);
  add<f16>(table, dvt::f16);
  add<bf16>(table, dvt::bf16);
}
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
