// oneDNN gets images with their channels last, the layout of its generated code: a chunk of x is copied into
// it, and one of y is copied back.
#include <algorithm>

#include "onednn.hpp"
#include "onednn/executable.hpp"
#include "onednn/panels.hpp"
#include "scratch.hpp"

namespace dovetail::cpu::onednn {
namespace {
Desc images(int64_t channels, const int64_t (&size)[2], int64_t channel, const int64_t (&axis)[2],
            DLDataType type) {
  const dnnl_dims_t dims = {1, channels, size[0], size[1]},
                    strides = {channels * size[0] * size[1], channel, axis[0], axis[1]};
  return make<Desc>(dnnl()->memory_desc_create_with_strides, 4, dims, data_type(type), strides);
}
Desc channels_last(int64_t channels, const int64_t (&size)[2], DLDataType type) {
  return images(channels, size, 1, {size[1] * channels, channels}, type);
}
Desc weights_of(const Convolution& c, dnnl_format_tag_t layout) {
  const dnnl_dims_t dims = {c.outputs, c.channels, c.kernel[0], c.kernel[1]};
  return make<Desc>(dnnl()->memory_desc_create_with_tag, 4, dims, data_type(c.type), layout);
}
Desc bias_of(const Convolution& c) {
  const dnnl_dims_t dims = {c.outputs};
  return c.bias ? make<Desc>(dnnl()->memory_desc_create_with_tag, 1, dims, data_type(c.type), dnnl_a) : nullptr;
}

PrimitiveDesc describe(const Convolution& c, const_dnnl_memory_desc_t weights) {
  const Desc x = channels_last(c.channels, c.in, c.type), y = channels_last(c.outputs, c.out, c.type),
             bias = bias_of(c);
  if (!x || !y || !weights || (c.bias && !bias)) return nullptr;
  const dnnl_dims_t between = {c.dilation[0] - 1, c.dilation[1] - 1};  // oneDNN counts the gaps
  return make<PrimitiveDesc>(dnnl()->convolution_forward_primitive_desc_create, dnnl()->engine,
                             dnnl_forward_inference, dnnl_convolution_direct, x.get(), weights, bias.get(), y.get(),
                             c.step, between, c.before, c.after, dnnl()->attributes);
}

// The layout of a panel of weights.
const Layout& layout(const Convolution& c) {
  static thread_local Cache<Convolution, Layout> cache;
  Convolution typical = c;
  typical.bias = false, typical.x_channel = typical.y_output = 0;
  for (int i = 0; i < 2; ++i) {
    typical.out[i] = c.like[i];
    typical.in[i] = (c.like[i] - 1) * c.step[i] + (c.kernel[i] - 1) * c.dilation[i] + 1;
    typical.before[i] = typical.after[i] = typical.x[i] = typical.y[i] = 0;
  }
  return cache.get(typical, [](const Convolution& t) {
    return Layout(describe(t, weights_of(t, dnnl_format_tag_any).get()), dnnl_query_weights_md);
  });
}

struct Steps {
  Executable bring, convolve, take_back;
};
Steps build(const Convolution& c) {
  Steps s;
  const PrimitiveDesc desc = describe(c, layout(c).desc.get());
  s.convolve = c.bias ? Executable(desc, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS})
                      : Executable(desc, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST});
  if (!s.convolve) return s;
  s.bring = reorder(images(c.channels, c.in, c.x_channel, c.x, c.type), channels_last(c.channels, c.in, c.type));
  s.take_back = reorder(channels_last(c.outputs, c.out, c.type), images(c.outputs, c.out, c.y_output, c.y, c.type));
  return s;
}
}  // namespace

bool panels(const Convolution& c, Panels& out) {
  const auto measure = [&](int64_t outputs, uint64_t& bytes, uint64_t& number) {
    Convolution panel = c;
    panel.outputs = outputs;
    const Layout& l = layout(panel);
    bytes = aligned(l.size), number = number * 31 + l.number;
    return bool(l.desc);
  };
  return dnnl() && cut_into_panels(c.outputs, c.channels * c.kernel[0] * c.kernel[1], out, measure);
}

bool pack_panel(const Convolution& c, const void* weight, void* to) {
  if (!dnnl()) return false;
  const Layout& l = layout(c);
  return l.desc && reorder(weights_of(c, dnnl_abcd), l.desc).run({weight, to});
}

bool convolve(const Convolution& c, const Panels& p, const void* x, const void* panels, const void* bias, void* y) {
  if (!dnnl()) return false;
  static thread_local Cache<Convolution, Steps> cache;
  const size_t element = c.type.bits / 8;
  void* const from = scratch(Scratch::operand_a, size_t(c.channels * c.in[0] * c.in[1]) * element);
  void* const to = scratch(Scratch::result, size_t(p.columns * c.out[0] * c.out[1]) * element);
  if (!from || !to) return false;
  for (int64_t o = 0; o < c.outputs; o += p.columns) {
    Convolution panel = c;
    panel.outputs = std::min(p.columns, c.outputs - o);
    const Steps& s = cache.get(panel, build);
    if (!s.convolve || !s.bring || !s.take_back) return false;
    if (!o && !s.bring.run({x, from})) return false;
    const char* const weights = static_cast<const char*>(panels) + uint64_t(o / p.columns) * p.bytes;
    const char* const b = static_cast<const char*>(bias) + size_t(o) * element;
    if (!(bias ? s.convolve.run({from, weights, to, b}) : s.convolve.run({from, weights, to}))) return false;
    if (!s.take_back.run({to, static_cast<char*>(y) + size_t(o * c.y_output) * element})) return false;
  }
  return true;
}
}  // namespace dovetail::cpu::onednn
