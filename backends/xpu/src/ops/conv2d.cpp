// conv2d and conv1d: by oneDNN where it has an implementation for the types and strides, else by our own kernel.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "device/device.hpp"
#include "gpu/by_type.hpp"
#include "gpu/window_rows.hpp"
#include "launch.hpp"

namespace gpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

int64_t groups_of(const dvt_call* c) { return dvt::Attrs(c).i64(3, 1); }

onednn::Operand operand(DLDataType type, std::initializer_list<int64_t> sizes) {  // without gaps
  onednn::Operand o{};
  o.type = type, o.axes = int32_t(sizes.size());
  std::copy(sizes.begin(), sizes.end(), o.size);
  int64_t step = 1;
  for (int i = o.axes; i-- > 0; step *= o.size[i]) o.stride[i] = step;
  return o;
}

onednn::Operand images(DLDataType type, const Windows& how) {
  onednn::Operand o = operand(type, {how.images, how.channels, how.h.in, how.w.in});
  const int64_t strides[] = {how.image_stride, how.channel_stride, how.h.stride, how.w.stride};
  int64_t inner = 1;  // of an axis of one element oneDNN wants the stride that a tensor without gaps has
  for (int i = o.axes; i-- > 0; inner = o.size[i] * o.stride[i]) o.stride[i] = o.size[i] == 1 ? inner : strides[i];
  return o;
}

// A convolution that is a product of matrices runs best on row-major images. All others win more by the layout that
// oneDNN likes best than the reorders cost: 1.3 to 6 times in bfloat16, in float32 they are even (3.13 on a CPU).
bool is_product(const Windows& how) {
  const auto single = [](const WindowAxis& a) { return a.size == 1 && a.step == 1 && a.padding == 0; };
  return single(how.h) && single(how.w);
}

// Nothing where it is not a convolution that oneDNN could do.
std::optional<onednn::Description> describe(const dvt_call* c) {
  const DLDataType type = c->in[0]->dtype;
  if (!onednn::serves(type)) return std::nullopt;
  if (!dvt::size(c->in[0]) || !dvt::size(c->in[1])) return std::nullopt;
  const Windows how = windows_of_convolution(c);
  const int64_t groups = groups_of(c), outputs = c->in[1]->shape[0], channels = c->in[1]->shape[1];
  onednn::Description d{};
  d.kind = onednn::Kind::convolution;
  d.any_images = !is_product(how);
  d.in = images(type, how);
  d.weights = groups == 1 ? operand(type, {outputs, channels, how.h.size, how.w.size})
                          : operand(type, {groups, outputs / groups, channels, how.h.size, how.w.size});
  if (dvt::has_in(c, 2)) d.bias = operand(type, {outputs});
  d.out = operand(type, {how.images, outputs, how.h.out, how.w.out});
  d.step[0] = how.h.step, d.step[1] = how.w.step;
  d.padding[0] = how.h.padding, d.padding[1] = how.w.padding;
  d.dilation[0] = how.h.dilation, d.dilation[1] = how.w.dilation;
  return d;
}

// oneDNN multiplies pairs of 16-bit channels: of an odd number the last one's partner is another pixel times 0, or
// a weight times 0. With infinities and NaN that is NaN.
bool has_half_a_pair(const dvt_call* c) { return c->in[0]->dtype.bits == 16 && c->in[1]->shape[1] % 2; }

onednn::PrimitiveRef primitive(dvt_device* d, const dvt_call* c) {
  auto description = describe(c);
  if (!description) return nullptr;
  onednn::PrimitiveRef found = d->onednn.find(*d, *description);
  // Without a primitive for 16 bits, as for float16 on a CPU, float32 and its conversions would be slow, too.
  if (!found || !has_half_a_pair(c)) return found;
  description->in_float32 = true;
  return d->onednn.find(*d, *description);
}

dvt_status run(dvt_device* d, const dvt_call* c) {
  const onednn::Arguments on = onednn::arguments(c);
  if (onednn::takes(d, c, on))
    if (const onednn::PrimitiveRef found = primitive(d, c)) return onednn::execute(d, c, *found, on);
  constexpr size_t tile = 64, side = 16;  // kernels/conv2d.hpp
  const Windows how = windows_of_convolution(c);
  const auto groups = uint32_t(groups_of(c));
  const uint64_t outputs = uint64_t(c->in[1]->shape[0]) / groups, places = uint64_t(how.h.out * how.w.out);
  const Grid range{
      3,
      {size_t(how.images) * groups, (outputs + tile - 1) / tile * side, (places + tile - 1) / tile * side},
      {1, side, side}};
  return launch(d, c, kernels[type_index(c->in[0]->dtype)], range, on.in, on.weights, on.bias, on.out, how, groups,
                outputs);
}

dvt_status query(dvt_device* d, const dvt_call* c, dvt_answer* answer) {
  if (const dvt_status s = query_type(d, c->in[0]->dtype, answer)) return s;
  if (const onednn::PrimitiveRef found = primitive(d, c))
    DVT_PUT(answer, dvt_answer, workspace, onednn::workspace(*found));
  return DVT_OK;
}

dvt_status pack_size(dvt_device* d, const dvt_call* c, uint32_t, uint64_t* size, uint64_t* layout) {
  return onednn::pack_size(c, primitive(d, c), size, layout);
}
dvt_status pack(dvt_device* d, const dvt_call* c, uint32_t, const dvt_packed* to) {
  return onednn::pack(d, c, primitive(d, c), to);
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : integers + floats) {
    // Wrapping sums of products have the same bits in signed and unsigned types.
    const DLDataType as = type.code == DVT_INT ? unsigned_of(type) : type;
    kernels[type_index(type)] = find_kernel("convolution", as);
    const bool ours = !onednn::serves(type);
    for (const char* op : {"dvt.conv2d", "dvt.conv1d"}) {
      dvt::Row row(op, run);
      row.in(type, DVT_O_STRIDED).in(type, ours ? 0 : DVT_O_PACKABLE).in(type, DVT_O_OPTIONAL).out(type);
      row.query(query);
      if (ours) row.deterministic();
      else row.pack(pack_size, pack);
      // Processors' and GPUs' bfloat16 instructions take subnormals for 0.
      if (type.code == DVT_BFLOAT) row.flags(DVT_K_FLUSHES_SUBNORMALS);
      table.add(row);
    }
  }
}
}  // namespace gpu
