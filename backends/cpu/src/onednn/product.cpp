#include <algorithm>

#include "onednn.hpp"
#include "onednn/executable.hpp"
#include "scratch.hpp"

namespace dovetail::cpu::onednn {
namespace {
// Of an axis of one element oneDNN wants the stride that a matrix without gaps has.
Desc matrix(int64_t rows, int64_t columns, int64_t row, int64_t column, dnnl_data_type_t type) {
  const dnnl_dims_t dims = {rows, columns},
                    strides = {rows == 1 ? columns * column : row, columns == 1 ? 1 : column};
  return make<Desc>(dnnl()->memory_desc_create_with_strides, 2, dims, type, strides);
}
Desc matrix_of_any_layout(int64_t rows, int64_t columns, dnnl_data_type_t type) {
  const dnnl_dims_t dims = {rows, columns};
  return make<Desc>(dnnl()->memory_desc_create_with_tag, 2, dims, type, dnnl_format_tag_any);
}

PrimitiveDesc describe(const Product& p, const_dnnl_memory_desc_t b) {
  const dnnl_data_type_t in = data_type(p.in), out = data_type(p.out);
  const Desc a = matrix(p.m, p.k, p.a_row, p.a_column, in), c = matrix(p.m, p.n, p.c_row, 1, out),
             bias = p.bias ? matrix(1, p.n, p.n, 1, dnnl_f32) : nullptr;
  if (!a || !b || !c || (p.bias && !bias)) return nullptr;
  return make<PrimitiveDesc>(dnnl()->matmul_primitive_desc_create, dnnl()->engine, a.get(), b, bias.get(), c.get(),
                             dnnl()->attributes);
}
Executable build(const Product& p, const_dnnl_memory_desc_t b) {
  const PrimitiveDesc desc = describe(p, b);
  if (p.bias) return {desc, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS}};
  return {desc, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}};
}
bool run(const Executable& e, const void* a, const void* b, const float* bias, void* c) {
  return bias ? e.run({a, b, c, bias}) : e.run({a, b, c});
}

// The layout of b: asked for with many rows of a, and taken for any number of them.
struct Shape {
  int64_t k, n;
  DLDataType type;
  uint32_t zero = 0;  // no padding: it is the key of a cache
};
const Layout& layout(const Shape& shape) {
  static thread_local Cache<Shape, Layout> cache;
  return cache.get(shape, [](const Shape& s) {
    constexpr int64_t many = 256;
    const Product typical{many, s.n, s.k, s.k, 1, 0, 0, s.n, s.type, s.type, false};
    const Desc any = matrix_of_any_layout(s.k, s.n, data_type(s.type));
    return Layout(describe(typical, any.get()), dnnl_query_weights_md);
  });
}

// Panels of about so many elements: enough work for a call even with few rows of a, and they stay in a core's cache
// while many rows go by.
int64_t columns_of_panel(const Weights& b) {
  constexpr int64_t elements = 1 << 17, step = 64;
  const int64_t wanted = std::clamp<int64_t>(elements / std::max<int64_t>(b.k, 1), step, 1024);
  const int64_t count = (b.n + wanted - 1) / wanted;
  return std::min(((b.n + count - 1) / count + step - 1) / step * step, b.n);
}
}  // namespace

bool multiply(const Product& p, const void* a, const void* b, const float* bias, void* c) {
  if (!dnnl()) return false;
  static thread_local Cache<Product, Executable> cache;
  const Executable& e = cache.get(
      p, [](const Product& q) { return build(q, matrix(q.k, q.n, q.b_row, q.b_column, data_type(q.in)).get()); });
  return run(e, a, b, bias, c);
}

bool panels(const Weights& b, Panels& out) {
  if (!dnnl()) return false;
  constexpr uint64_t aligned = 64;
  out.columns = columns_of_panel(b), out.count = (b.n + out.columns - 1) / out.columns;
  out.size = out.layout = 0;
  for (const int64_t n : {out.columns, b.n - (out.count - 1) * out.columns}) {  // of the first panels, of the last
    const Layout& l = layout({b.k, n, b.type});
    if (!l.desc) return false;
    if (!out.size) out.bytes = (l.size + aligned - 1) / aligned * aligned;
    out.size = uint64_t(out.count - 1) * out.bytes + l.size;
    out.layout = out.layout * 31 + l.number;
  }
  return true;
}

bool pack_panel(const Weights& b, const void* data, void* to) {
  if (!dnnl()) return false;
  const Layout& wanted = layout({b.k, b.n, b.type});
  const Desc given = matrix(b.k, b.n, b.row, b.column, data_type(b.type));
  if (!wanted.desc || !given) return false;
  return reorder(given, wanted.desc).run({data, to});
}

// oneDNN's code for a panel writes rows without gaps only.
bool multiply_panel(const Product& p, const void* a, const void* panel, const float* bias, void* c) {
  if (!dnnl()) return false;
  static thread_local Cache<Product, Executable> cache;
  Product key = p;
  key.b_row = key.b_column = 0, key.c_row = p.n;
  const Executable& e =
      cache.get(key, [](const Product& q) { return build(q, layout({q.k, q.n, q.in}).desc.get()); });
  if (!e || p.c_row == p.n || p.m == 1) return run(e, a, panel, bias, c);
  const size_t element = p.out.bits / 8, row = size_t(p.n) * element;
  char *const dense = static_cast<char*>(scratch(Scratch::result, size_t(p.m) * row)), *to = static_cast<char*>(c);
  if (!dense || !run(e, a, panel, bias, dense)) return false;
  for (int64_t i = 0; i < p.m; ++i, to += size_t(p.c_row) * element) std::memcpy(to, dense + size_t(i) * row, row);
  return true;
}
}  // namespace dovetail::cpu::onednn
