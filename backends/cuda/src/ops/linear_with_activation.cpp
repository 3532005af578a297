// linear and an activation in one product of cuBLASLt. The op's decomposition serves the activations that its
// epilogues lack, and relu: theirs makes 0 of NaN.
#include "gpu/dtypes.hpp"
#include "gpu/rows.hpp"
#include "linear.hpp"

namespace gpu {
namespace {
using cublaslt::Activation;

LinearProduct product_of(const dvt_call* c) {
  if (!dvt::Attrs(c).is(0, "gelu_tanh")) return refused("of cuBLASLt's epilogues gelu with a tanh alone is used");
  LinearProduct made = linear_product(c);
  if (!made.product) return made;
  cublaslt::Product& p = *made.product;
  p.set_type(c->in[0]->dtype);
  p.has_bias = dvt::has_in(c, 2), p.activation = Activation::gelu_tanh;
  return made;
}

dvt_status query(dvt_device* d, const dvt_call* c, dvt_answer* answer) {
  return query_linear(d, product_of(c), answer);
}

dvt_status run(dvt_device* d, const dvt_call* c) {
  const auto in = [&](uint32_t i) { return dvt::has_in(c, i) ? dvt::data<const void>(c->in[i]) : nullptr; };
  return run_linear(d, c, product_of(c), {in(0), in(1), in(2), dvt::data<void>(c->out[0])});
}
}  // namespace

void GPU_ROWS(dvt::KernelTable& table) {
  // The accuracy of its tanh is undocumented. The hardware's own errs by 2**-11, half an ulp of a sum in float16:
  // too much for float32.
  for (const DLDataType type : {dvt::f16, dvt::bf16}) {
    dvt::Row row("dvt.linear_with_activation", run);
    row.in(type, 0, linear_align_log2).in(type, DVT_O_STRIDED, linear_align_log2);
    row.in(type, DVT_O_OPTIONAL, linear_align_log2).out(type);
    table.add(row.engine("cublaslt").query(query));
  }
}
}  // namespace gpu
