// scaled_linear by cuBLASLt: fp8 in one call, from compute capability 8.9 on, for results of 16 bits; int8 as sums
// in int32, which a kernel of our own scales. The op's decomposition serves fp8 with results of 32 bits, as tensor
// cores keep about 14 bits of a sum, and calls for which cuBLASLt has no algorithm: sizes that are no multiples of
// 16 or of 4, two operands of float8_e5m2.
#include <array>
#include <string>

#include "device/errors.hpp"
#include "gpu/by_type.hpp"
#include "gpu/rows.hpp"
#include "kernels/common/quantization.hpp"
#include "launch.hpp"
#include "linear.hpp"

namespace gpu {
namespace {
enum { x, weight, x_scale, weight_scale, bias };

constinit std::array<KernelId, type_count> kernels{};

bool is_one(const dvt_call* c, uint32_t scale) { return dvt::size(c->in[scale]) == 1; }
const void* in(const dvt_call* c, uint32_t i) {
  return dvt::has_in(c, i) ? dvt::data<const void>(c->in[i]) : nullptr;
}

// ---- fp8 ----------------------------------------------------------------------------

LinearProduct product_of(const dvt_call* c) {
  LinearProduct made = linear_product(c);
  if (!made.product) return made;
  cublaslt::Product& p = *made.product;
  const bool one = is_one(c, x_scale), other = is_one(c, weight_scale);
  // One row has one scale, whether it is called one for all or one for each.
  if (one && other) p.scales = cublaslt::Scales::of_operands;
  else if ((!one || p.m == 1) && (!other || p.n == 1)) p.scales = cublaslt::Scales::of_rows;
  else return refused("cuBLASLt has one scale for all of both operands, or one for each row of both");
  p.a_type = c->in[x]->dtype, p.b_type = c->in[weight]->dtype, p.c_type = c->out[0]->dtype;
  p.has_bias = dvt::has_in(c, bias);
  p.bias_type = p.has_bias ? c->in[bias]->dtype : p.c_type;
  return made;
}

dvt_status query(dvt_device* d, const dvt_call* c, dvt_answer* answer) {
  return query_linear(d, product_of(c), answer);
}

dvt_status run(dvt_device* d, const dvt_call* c) {
  return run_linear(
      d, c, product_of(c),
      {in(c, x), in(c, weight), in(c, bias), dvt::data<void>(c->out[0]), in(c, x_scale), in(c, weight_scale)});
}

// ---- integers -----------------------------------------------------------------------

LinearProduct sums_of(const dvt_call* c) {
  LinearProduct made = linear_product(c);
  if (!made.product) return made;
  if (made.product->k >= int64_t{1} << 17) return refused("sums of so many products may not fit in int32");
  made.product->set_type(dvt::i8), made.product->c_type = dvt::i32;
  return made;
}
// Bytes of the workspace, before the library's.
uint64_t bytes_of_sums(const cublaslt::Product& p) {
  constexpr uint64_t alignment = cublaslt::most_alignment;
  return (uint64_t(p.c_step) * sizeof(int32_t) + alignment - 1) / alignment * alignment;
}

dvt_status query_integers(dvt_device* d, const dvt_call* c, dvt_answer* answer) {
  const LinearProduct sums = sums_of(c);
  if (dvt_status status = query_linear(d, sums, answer)) return status;
  DVT_PUT(answer, dvt_answer, workspace, answer->workspace + bytes_of_sums(*sums.product));
  return DVT_OK;
}

dvt_status run_integers(dvt_device* d, const dvt_call* c) {
  return guarded(d, [&]() -> dvt_status {
    const LinearProduct product = sums_of(c);
    const cublaslt::Product& p = product.product.value();
    auto* const sums = static_cast<std::byte*>(c->workspace);
    const uint64_t bytes = bytes_of_sums(p);
    if (dvt_status s = enqueue_linear(d, c, product, {in(c, x), in(c, weight), nullptr, sums}, sums + bytes,
                                      c->workspace_size - bytes))
      return s;
    const ScaledSums how = {uint64_t(p.m),
                            uint64_t(p.n),
                            static_cast<const float*>(in(c, x_scale)),
                            static_cast<const float*>(in(c, weight_scale)),
                            !is_one(c, x_scale),
                            !is_one(c, weight_scale)};
    return launch(d, c, kernels[type_index(c->out[0]->dtype)], grid_of_rows(how.rows, how.columns),
                  static_cast<const void*>(sums), in(c, bias), dvt::data<void>(c->out[0]), how);
  });
}

// ---- rows ---------------------------------------------------------------------------

struct Types {
  DLDataType x, weight, bias, out;
};
void add_row(dvt::KernelTable& table, dvt::Row row, const Types& of) {
  row.in(of.x, 0, linear_align_log2).in(of.weight, DVT_O_STRIDED, linear_align_log2);
  row.in(dvt::f32, 0, linear_align_log2).in(dvt::f32, 0, linear_align_log2);
  row.in(of.bias, DVT_O_OPTIONAL, linear_align_log2).out(of.out);
  table.add(row.engine("cublaslt"));
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  const auto [e4m3, e5m2] = std::pair{dvt::f8e4m3fn, dvt::f8e5m2};
  for (const DLDataType out : {dvt::f32, dvt::f16, dvt::bf16}) {
    const DLDataType of_bias = dvt::same(out, dvt::f16) ? dvt::f16 : dvt::bf16;  // as cuBLASLt wants it
    for (const auto& [left, right] : {std::pair{e4m3, e4m3}, std::pair{e4m3, e5m2}, std::pair{e5m2, e4m3}})
      if (out.bits == 16)
        add_row(table, dvt::Row("dvt.scaled_linear", run).query(query), {left, right, of_bias, out});
    kernels[type_index(out)] = find_kernel("scale_sums", out);
    add_row(table, dvt::Row("dvt.scaled_linear", run_integers).query(query_integers), {dvt::i8, dvt::i8, out, out});
  }
}
}  // namespace gpu
