// matmul and linear: by oneDNN where it has an implementation for the types and strides, else by our own kernel.
#include <array>
#include <optional>
#include <string>

#include "device/device.hpp"
#include "dovetail/product.hpp"
#include "gpu/by_type.hpp"
#include "kernels/common/product.hpp"
#include "launch.hpp"

namespace gpu {
namespace {
constinit std::array<KernelId, type_count> kernels{};

struct Strides {
  int64_t row, column;
};
// For an axis of one element, oneDNN expects the stride that a matrix without gaps has.
Strides settled(uint64_t rows, uint64_t columns, int64_t row, int64_t column) {
  if (columns == 1 && rows == 1) return {1, 1};
  if (columns == 1) return {row, 1};
  if (rows == 1) return {int64_t(columns) * column, column};
  return {row, column};
}

// (batch..., rows, columns); an axis of the batch along which the operand does not move has size 1 in it. Its
// stride spans the whole operand: from a lesser one oneDNN concludes that the matrices are dense.
onednn::Operand operand(const Product& p, DLDataType type, uint64_t rows, uint64_t columns, Strides s,
                        const int64_t* batch) {
  onednn::Operand o{};
  o.type = type, o.axes = int32_t(p.axes) + 2;
  int64_t span = std::max(int64_t(rows) * s.row, int64_t(columns) * s.column);
  for (uint32_t i = 0; i < p.axes; ++i) span = std::max(span, p.batch[i] * batch[i]);
  for (uint32_t i = 0; i < p.axes; ++i)
    o.size[i] = batch[i] ? p.batch[i] : 1, o.stride[i] = batch[i] ? batch[i] : span;
  o.size[p.axes] = int64_t(rows), o.size[p.axes + 1] = int64_t(columns);
  o.stride[p.axes] = s.row, o.stride[p.axes + 1] = s.column;
  return o;
}

// Nothing where it is not a product that oneDNN could do.
std::optional<onednn::Description> describe(const Product& p, DLDataType type, bool has_bias, bool packed) {
  if (!onednn::serves(type)) return std::nullopt;
  if (p.axes + 2 > onednn::most_axes || p.k == 0) return std::nullopt;
  int64_t out_batch[dvt::most_batch_axes], none[dvt::most_batch_axes] = {};
  int64_t step = int64_t(p.m * p.n);
  for (uint32_t i = p.axes; i-- > 0; step *= p.batch[i]) out_batch[i] = step;
  onednn::Description d{};
  d.kind = onednn::Kind::matmul, d.any_weights = packed;
  d.in = operand(p, type, p.m, p.k, settled(p.m, p.k, p.a_row, p.a_column), p.a_batch);
  d.weights = operand(p, type, p.k, p.n, settled(p.k, p.n, p.b_row, p.b_column), p.b_batch);
  d.out = operand(p, type, p.m, p.n, {int64_t(p.n), 1}, out_batch);
  if (has_bias) d.bias = operand(p, type, 1, p.n, {int64_t(p.n), 1}, none);
  return d;
}

template <Product (*product)(const dvt_call*)>
onednn::PrimitiveRef primitive(dvt_device* d, const dvt_call* c, bool packed = false) {
  const auto description = describe(product(c), c->in[0]->dtype, dvt::has_in(c, 2), packed);
  return description ? d->onednn.find(*d, *description) : nullptr;
}

template <Product (*product)(const dvt_call*)>
dvt_status run(dvt_device* d, const dvt_call* c) {
  const onednn::Arguments on = onednn::arguments(c);
  if (onednn::takes(d, c, on))
    if (const onednn::PrimitiveRef found = primitive<product>(d, c, on.packed))
      return onednn::execute(d, c, *found, on);
  const DLDataType type = c->in[0]->dtype;
  const auto [rows, columns] = tile_of_product(type.bits, type.code == DVT_FLOAT || type.code == DVT_BFLOAT);
  constexpr size_t side = 16;  // kernels/common/tile.hpp
  const Product p = product(c);
  const Grid range{
      3, {p.matrices, (p.m + rows - 1) / rows * side, (p.n + columns - 1) / columns * side}, {1, side, side}};
  return launch(d, c, kernels[type_index(type)], range, on.in, on.weights, on.bias, on.out, p);
}

template <Product (*product)(const dvt_call*)>
dvt_status query(dvt_device* d, const dvt_call* c, dvt_answer* answer) {
  if (const dvt_status s = query_type(d, c->in[0]->dtype, answer)) return s;
  if (const onednn::PrimitiveRef found = primitive<product>(d, c))
    DVT_PUT(answer, dvt_answer, workspace, onednn::workspace(*found));
  return DVT_OK;
}

// One matrix of weights for all of a batch. The workspace is what query() reported for them as they lie.
template <Product (*product)(const dvt_call*)>
dvt_status pack_size(dvt_device* d, const dvt_call* c, uint32_t, uint64_t* size, uint64_t* layout) {
  if (product(c).axes) return DVT_UNSUPPORTED;
  const onednn::PrimitiveRef plain = primitive<product>(d, c), packed = primitive<product>(d, c, true);
  if (!plain || !packed || onednn::workspace(*packed, true) > onednn::workspace(*plain)) return DVT_UNSUPPORTED;
  return onednn::pack_size(c, packed, size, layout);
}
template <Product (*product)(const dvt_call*)>
dvt_status pack(dvt_device* d, const dvt_call* c, uint32_t, const dvt_packed* to) {
  return onednn::pack(d, c, primitive<product>(d, c, true), to);
}

template <Product (*product)(const dvt_call*)>
dvt::Row row(const char* op, DLDataType type) {
  dvt::Row made(op, run<product>);
  made.query(query<product>);
  const bool ours = !onednn::serves(type);
  made.in(type, DVT_O_STRIDED).in(type, DVT_O_STRIDED | (ours ? 0 : DVT_O_PACKABLE));
  if (ours) made.deterministic();
  else made.pack(pack_size<product>, pack<product>);
  // Processors' and GPUs' bfloat16 instructions take subnormals for 0.
  if (type.code == DVT_BFLOAT) made.flags(DVT_K_FLUSHES_SUBNORMALS);
  return made;
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  for (const DLDataType type : integers + floats) {
    // Wrapping sums of products have the same bits in signed and unsigned types.
    const DLDataType as = type.code == DVT_INT ? unsigned_of(type) : type;
    kernels[type_index(type)] = find_kernel("matmul", as);
    table.add(row<dvt::product_of_matmul>("dvt.matmul", type).out(type));
    table.add(row<dvt::product_of_linear>("dvt.linear", type).in(type, DVT_O_OPTIONAL).out(type));
  }
}
}  // namespace gpu
