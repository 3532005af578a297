// Attention: torch's own composite asks which kernel a device has; "overrideable" is ours, in eager mode and in
// graphs.
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_ops.h>
#include <ATen/ops/_scaled_dot_product_attention_math_ops.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_ops.h>
#include <ATen/ops/empty_strided.h>

#include "call.hpp"
#include "random.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;

int64_t choose(const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor&, double, bool,
               std::optional<double>, bool) {
  // torch's rule for graphs has three or four axes only; sizes there may be symbols.
  const bool in_graph = q.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Python);
  const bool fits = q.dim() >= (in_graph ? 3 : 2) && !(in_graph && q.dim() > 4) && q.dim() == k.dim() &&
                    k.dim() == v.dim() && is_real_float(q) && TORCH_GUARD_OR_TRUE(q.sym_numel().sym_ne(0)) &&
                    TORCH_GUARD_OR_TRUE(k.sym_numel().sym_ne(0)) && q.scalar_type() == k.scalar_type() &&
                    k.scalar_type() == v.scalar_type();
  return int64_t(fits ? at::SDPBackend::overrideable : at::SDPBackend::math);
}
bool is_grouped(const Tensor& q, const Tensor& k) { return q.dim() >= 3 && q.size(-3) != k.size(-3); }

using Forward = std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;
Forward forward(const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor& mask, double dropout_p,
                bool causal, bool, std::optional<double> scale) {
  Tensor y, lse, key;
  if (dropout_p > 0) {
    Axes scores(q.sizes().begin(), q.sizes().end());
    scores.back() = k.size(-2);
    key = draw_key({}, q.device().index(), uint64_t(c10::multiply_integers(scores)));
  }
  const bool served = Call(op<"scaled_dot_product_attention_with_logsumexp">())
                          .in(q)
                          .in(k)
                          .in(v)
                          .in(mask)
                          .in(key)
                          .set("is_causal", causal)
                          .set("scale", scale)
                          .set("enable_gqa", is_grouped(q, k))
                          .set("dropout_p", dropout_p)
                          .make(y, lse);
  if (!served) {
    y = std::get<0>(aten::_scaled_dot_product_attention_math::call(q, k, v, mask, dropout_p, causal, {}, scale,
                                                                   is_grouped(q, k)));
    lse = empty({0}, q.scalar_type(), q.device().index());
  }
  // torch's rule for graphs gives the result the layout of the query.
  if (y.sizes() == q.sizes() && !q.is_contiguous() && q.is_non_overlapping_and_dense())
    y = at::empty_strided(q.sizes(), q.strides(), q.options()).copy_(y);
  const Tensor none = empty({0}, at::kLong, q.device().index());
  return {y,
          lse,
          none,
          none,
          q.size(-2),
          k.size(-2),
          key.defined() ? key : none,
          none,
          empty({0}, q.scalar_type(), q.device().index())};
}

// The weights are computed anew; the gradient by the mask needs them.
Tensor mask_gradient(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                     const Tensor& out, const Tensor& lse, double scale) {
  const Tensor scores = q.matmul(k.transpose(-2, -1)) * scale + mask;
  const Tensor weights = (scores - lse.unsqueeze(-1)).exp();
  const Tensor d = weights * (grad.matmul(v.transpose(-2, -1)) - (grad * out).sum(-1, true));
  return d.sum_to_size(mask.sizes());
}

using Gradients = std::tuple<Tensor, Tensor, Tensor, Tensor>;
Gradients backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                   std::array<bool, 4> wanted, const Tensor& out, const Tensor& lse, const Tensor&, const Tensor&,
                   c10::SymInt, c10::SymInt, double dropout_p, bool causal, const Tensor& key, const Tensor&,
                   std::optional<double> scale) {
  TORCH_CHECK_NOT_IMPLEMENTED(lse.numel(), "dovetail: attention over shapes that its op refuses has no gradient; ",
                              "use torch.nn.attention.sdpa_kernel(SDPBackend.MATH)");
  TORCH_CHECK_NOT_IMPLEMENTED(!(wanted[3] && mask.defined()) || (dropout_p == 0 && !is_grouped(q, k)),
                              "dovetail: the gradient by attn_mask exists without dropout and grouped heads only; ",
                              "use torch.nn.attention.sdpa_kernel(SDPBackend.MATH)");
  Tensor dq, dk, dv, dmask;
  Call call(op<"scaled_dot_product_attention_grad">());
  call.in(q).in(k).in(v).in(out).in(lse).in(grad).in(mask).in(dropout_p > 0 ? key : Tensor());
  call.set("is_causal", causal).set("scale", scale).set("enable_gqa", is_grouped(q, k)).set("dropout_p", dropout_p);
  TORCH_CHECK(call.make(dq, dk, dv),
              "dovetail: the gradient of attention was refused for operands that its forward took");
  if (wanted[3] && mask.defined())
    dmask = mask_gradient(grad, q, k, v, mask, out, lse, scale ? *scale : 1 / std::sqrt(double(q.size(-1))));
  return {dq, dk, dv, dmask};
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::_fused_sdp_choice>(m, &choose);
  implement<aten::_scaled_dot_product_fused_attention_overrideable>(m, &forward);
  implement<aten::_scaled_dot_product_fused_attention_overrideable_backward>(m, &backward);
}
}  // namespace dovetail_torch

// Eager mode reads the stub, tracing the op.
namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &dovetail_torch::choose)
}
