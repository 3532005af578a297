#include <algorithm>
#include <limits>

#include "onednn.hpp"
#include "onednn/executable.hpp"
#include "onednn/panels.hpp"
#include "scratch.hpp"

namespace dovetail::cpu::onednn {
namespace {
// For an axis of one element oneDNN requires the stride of a matrix without gaps.
Desc matrix(int64_t rows, int64_t columns, int64_t row, int64_t column, dnnl_data_type_t type) {
  const dnnl_dims_t dims = {rows, columns},
                    strides = {rows == 1 ? columns * column : row, columns == 1 ? 1 : column};
  return make<Desc>(dnnl()->memory_desc_create_with_strides, 2, dims, type, strides);
}
Desc matrix_of_any_layout(int64_t rows, int64_t columns, dnnl_data_type_t type) {
  const dnnl_dims_t dims = {rows, columns};
  return make<Desc>(dnnl()->memory_desc_create_with_tag, 2, dims, type, dnnl_format_tag_any);
}

// The signs and the sums' type for which oneDNN has generated code for bytes. On aarch64 it adds up in int32
// (SMMLA) and returns the sum only as float32.
bool is_bytes(DLDataType in) { return data_type(in) == dnnl_u8; }
#if defined(__x86_64__)
constexpr dnnl_data_type_t bytes_of_a = dnnl_u8, sums_of_bytes = dnnl_s32;
#else
constexpr dnnl_data_type_t bytes_of_a = dnnl_s8, sums_of_bytes = dnnl_f32;
#endif
dnnl_data_type_t a_type(DLDataType in) { return is_bytes(in) ? bytes_of_a : data_type(in); }
dnnl_data_type_t weights_type(DLDataType in) { return is_bytes(in) ? dnnl_s8 : data_type(in); }
dnnl_data_type_t sum_type(const Product& p) { return is_bytes(p.in) ? sums_of_bytes : data_type(p.out); }
bool is_converted(const Product& p) { return sum_type(p) != data_type(p.out); }

PrimitiveDesc describe(const Product& p, const_dnnl_memory_desc_t b) {
  const Desc a = matrix(p.m, p.k, p.a_row, p.a_column, a_type(p.in)), c = matrix(p.m, p.n, p.c_row, 1, sum_type(p)),
             bias = p.bias ? matrix(1, p.n, p.n, 1, dnnl_f32) : nullptr;
  if (!a || !b || !c || (p.bias && !bias)) return nullptr;
  return make<PrimitiveDesc>(dnnl()->matmul_primitive_desc_create, dnnl()->engine, a.get(), b, bias.get(), c.get(),
                             p.add ? dnnl()->adding : dnnl()->attributes);
}
// oneDNN's GEMM multiplies bfloat16 in pairs: an infinite last element of an odd row of a makes NaN.
bool loses_infinity(const Product& p, const PrimitiveDesc& desc) {
  return data_type(p.in) == dnnl_bf16 && p.k % 2 && is_gemm(desc);
}
Executable build(const Product& p, const_dnnl_memory_desc_t b) {
  const PrimitiveDesc desc = describe(p, b);
  if (loses_infinity(p, desc)) return {};
  if (p.bias) return {desc, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS}};
  return {desc, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}};
}
bool run(const Executable& e, const void* a, const void* b, const float* bias, void* c) {
  return bias ? e.run({a, b, c, bias}) : e.run({a, b, c});
}

// The layout of a block of b: queried with many rows of a, and used for any number of them.
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
    const Desc any = matrix_of_any_layout(s.k, s.n, weights_type(s.type));
    return Layout(describe(typical, any.get()), dnnl_query_weights_md);
  });
}

// A panel is a stack of blocks. float32 is summed in blocks of this many products, because rounding errors
// grow with the number of products; oneDNN's code for a block makes one sum. It adds up bfloat16 in float32,
// where the errors do not matter. Sums of bytes that it returns as float32 are exact up to 2^24.
int64_t depth(DLDataType type) {
  if (data_type(type) == dnnl_f32) return 128;
  if (is_bytes(type) && sums_of_bytes == dnnl_f32) return (1 << 24) / (128 * 128);
  return std::numeric_limits<int64_t>::max();
}

// Calls f(q, k, layout, offset) for each block of rows [q, q + k) of b, `offset` bytes into the panel, until
// f returns false.
template <class F>
bool for_each_block(int64_t k, int64_t n, DLDataType type, F f) {
  uint64_t offset = 0;
  for (int64_t q = 0, rows; q < k; q += rows) {
    rows = std::min(k - q, depth(type));
    const Layout& l = layout({rows, n, type});
    if (!l.desc || !f(q, rows, l, offset)) return false;
    offset += aligned(l.size);
  }
  return true;
}

const char* at(const void* data, int64_t element, DLDataType type) {
  return static_cast<const char*>(data) + element * (type.bits / 8);
}

// Rows of `row` bytes, `from_gap` and `to_gap` bytes apart.
void copy_rows(int64_t rows, size_t row, const void* from, size_t from_gap, void* to, size_t to_gap) {
  const char* source = static_cast<const char*>(from);
  char* target = static_cast<char*>(to);
  for (int64_t i = 0; i < rows; ++i, source += from_gap, target += to_gap) std::memcpy(target, source, row);
}

bool multiply_panel_with_gaps(const Product& p, const void* a, const void* panel, const float* bias, void* c) {
  Product dense = p;
  dense.c_row = p.n;
  const size_t element = p.out.bits / 8, row = size_t(p.n) * element;
  void* const buffer = scratch(Scratch::result, size_t(p.m) * row);
  if (!buffer || !multiply_panel(dense, a, panel, bias, buffer)) return false;
  copy_rows(p.m, row, buffer, row, c, size_t(p.c_row) * element);
  return true;
}

// Adds whole numbers to c, wrapping.
void add_to(uint32_t* c, const float* sums, int64_t count) {
  for (int64_t i = 0; i < count; ++i) c[i] += uint32_t(int32_t(sums[i]));
}

// Runs a block whose sums are float32 and adds them to c, which is int32, or stores them there.
bool run_and_convert(const Executable& e, const Product& block, const void* a, const void* b, bool add, void* c) {
  const int64_t count = block.m * block.n;
  float* const sums = static_cast<float*>(scratch(Scratch::partial_result, size_t(count) * sizeof(float)));
  if (!sums || !e.run({a, b, sums})) return false;
  if (!add) std::fill_n(static_cast<uint32_t*>(c), count, 0);
  add_to(static_cast<uint32_t*>(c), sums, count);
  return true;
}

// Columns [q, q + block.k) of a with rows without gaps, copied if needed; nullptr: out of memory.
const void* columns(Product& block, const void* a, int64_t q) {
  const void* const from = at(a, q * block.a_column, block.in);
  if (block.m == 1 || block.a_column != 1 || block.a_row == block.k) return from;
  const size_t element = block.in.bits / 8, row = size_t(block.k) * element;
  void* const buffer = scratch(Scratch::operand_a, size_t(block.m) * row);
  if (buffer) copy_rows(block.m, row, from, size_t(block.a_row) * element, buffer, row);
  block.a_row = block.k;
  return buffer;
}
}  // namespace

bool multiply(const Product& p, const void* a, const void* b, const float* bias, void* c) {
  if (!dnnl() || is_converted(p)) return false;
  static thread_local Cache<Product, Executable> cache;
  const Executable& e = cache.get(p, [](const Product& q) {
    return build(q, matrix(q.k, q.n, q.b_row, q.b_column, weights_type(q.in)).get());
  });
  return run(e, a, b, bias, c);
}

bool panels(const Weights& b, Panels& out) {
  const auto measure = [&](int64_t n, uint64_t& bytes, uint64_t& number) {
    return for_each_block(b.k, n, b.type, [&](int64_t, int64_t, const Layout& l, uint64_t offset) {
      bytes = offset + aligned(l.size), number = number * 31 + l.number;
      return true;
    });
  };
  return dnnl() && cut_into_panels(b.n, b.k, out, measure);
}

bool pack_panel(const Weights& b, const void* data, void* to) {
  if (!dnnl()) return false;
  static thread_local Cache<Weights, Executable> cache;
  return for_each_block(b.k, b.n, b.type, [&](int64_t q, int64_t k, const Layout& l, uint64_t offset) {
    Weights block = b;
    block.k = k;
    const Executable& e = cache.get(block, [&](const Weights& w) {
      const Desc given = matrix(w.k, w.n, w.row, w.column, weights_type(w.type));
      return given ? reorder(given, l.desc) : Executable();
    });
    return e.run({at(data, q * b.row, b.type), static_cast<char*>(to) + offset});
  });
}

// oneDNN's code for a panel reads and writes rows without gaps only.
bool multiply_panel(const Product& p, const void* a, const void* panel, const float* bias, void* c) {
  if (!dnnl()) return false;
  if (p.c_row != p.n && p.m > 1) return multiply_panel_with_gaps(p, a, panel, bias, c);
  static thread_local Cache<Product, Executable> cache;
  return for_each_block(p.k, p.n, p.in, [&](int64_t q, int64_t k, const Layout& l, uint64_t offset) {
    Product block = p;
    block.k = k, block.b_row = block.b_column = 0, block.bias = p.bias && !q, block.add = q && !is_converted(p);
    const void *const from = columns(block, a, q), *const b = static_cast<const char*>(panel) + offset;
    const Executable& e = cache.get(block, [&](const Product& key) { return build(key, l.desc.get()); });
    if (!from) return false;
    return is_converted(p) ? run_and_convert(e, block, from, b, q != 0, c) : run(e, from, b, q ? nullptr : bias, c);
  });
}
}  // namespace dovetail::cpu::onednn
