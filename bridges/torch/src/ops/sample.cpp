// Random numbers and dropout: equal bits on every device of Dovetail, other ones than torch's CPU draws.
#include <ATen/ops/bernoulli_ops.h>
#include <ATen/ops/cauchy_ops.h>
#include <ATen/ops/exponential_ops.h>
#include <ATen/ops/geometric_ops.h>
#include <ATen/ops/log_normal_ops.h>
#include <ATen/ops/multinomial_ops.h>
#include <ATen/ops/native_dropout_backward_ops.h>
#include <ATen/ops/native_dropout_ops.h>
#include <ATen/ops/normal_ops.h>
#include <ATen/ops/random_ops.h>
#include <ATen/ops/uniform_ops.h>

#include <cmath>
#include <limits>

#include "call.hpp"
#include "random.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;
using Generator = std::optional<at::Generator>;

template <Name name>
bool draw(c10::IntArrayRef size, at::ScalarType dtype, c10::DeviceIndex index, const Generator& g, Tensor& r) {
  const auto n = uint64_t(c10::multiply_integers(size));
  if (!n) return r = empty(size, dtype, index), true;
  if (!at::isFloatingType(dtype)) return false;
  const uint64_t words = dtype == at::kDouble ? 2 * n : n;
  return Call(op<name>()).in(draw_key(g, index, words + words % 2)).set("shape", size).set("dtype", dtype).make(r);
}
template <Name name>
bool draw_like(const Tensor& x, const Generator& g, Tensor& r) {
  return draw<name>(x.sizes(), x.scalar_type(), x.device().index(), g, r);
}

Tensor& uniform_(Tensor& x, double from, double to, Generator g) {
  Tensor r;
  if (!(from <= to) || !draw_like<"uniform">(x, g, r)) return fall_back<aten::uniform_>(x, from, to, g);
  return x.copy_(from == 0 && to == 1 ? r : r.mul_(to - from).add_(from));
}
Tensor& normal_(Tensor& x, double mean, double std, Generator g) {
  Tensor r;
  if (!(std >= 0) || !draw_like<"normal">(x, g, r)) return fall_back<aten::normal_>(x, mean, std, g);
  return x.copy_(mean == 0 && std == 1 ? r : r.mul_(std).add_(mean));
}
Tensor& exponential_(Tensor& x, double rate, Generator g) {
  Tensor r;
  if (!(rate > 0) || !draw_like<"uniform">(x, g, r)) return fall_back<aten::exponential_>(x, rate, g);
  return x.copy_(r.neg_().log1p_().div_(-rate));  // of 1 - u, which is never 0
}
Tensor& cauchy_(Tensor& x, double median, double sigma, Generator g) {
  Tensor r;
  if (!(sigma > 0) || !draw_like<"uniform">(x, g, r)) return fall_back<aten::cauchy_>(x, median, sigma, g);
  return x.copy_(r.sub_(0.5).mul_(M_PI).tan_().mul_(sigma).add_(median));
}
Tensor& log_normal_(Tensor& x, double mean, double std, Generator g) {
  Tensor r;
  if (!(std > 0) || !draw_like<"normal">(x, g, r)) return fall_back<aten::log_normal_>(x, mean, std, g);
  return x.copy_(r.mul_(std).add_(mean).exp_());
}
Tensor& geometric_(Tensor& x, double p, Generator g) {
  Tensor r;
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  if (!draw<"uniform">(x.sizes(), at::kFloat, x.device().index(), g, r))
    return fall_back<aten::geometric_>(x, p, g);
  return x.copy_(r.neg_().log1p_().div_(std::log1p(-p)).ceil_().clamp_min_(1));
}
// Means and deviations that are tensors.
Tensor scaled_normal(const Tensor& like, const Tensor* mean, const Tensor* std, const Generator& g) {
  Tensor r = empty(like.sizes(), like.scalar_type(), like.device().index());
  normal_(r, 0, 1, g);
  if (std) r = r * *std;
  return mean ? r + *mean : r;
}
Tensor normal_of_mean(const Tensor& mean, double std, Generator g) {
  TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  Tensor r = empty(mean.sizes(), mean.scalar_type(), mean.device().index());
  return normal_(r, 0, std, g) + mean;
}
Tensor normal_of_std(double mean, const Tensor& std, Generator g) {
  return scaled_normal(std, nullptr, &std, g) + mean;
}
Tensor normal_of_both(const Tensor& mean, const Tensor& std, Generator g) {
  const Tensor like = mean.sizes() == std.sizes() ? mean : mean + std;
  return scaled_normal(like, &mean, &std, g);
}
Tensor& bernoulli_(Tensor& x, double p, Generator g) {
  Tensor r;
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  if (!draw<"uniform">(x.sizes(), at::kFloat, x.device().index(), g, r))
    return fall_back<aten::bernoulli__float>(x, p, g);
  return x.copy_(r.lt(p));
}
Tensor& bernoulli_tensor_(Tensor& x, const Tensor& p, Generator g) {
  Tensor r;
  if (!is_real_float(p) || !draw<"uniform">(x.sizes(), p.scalar_type(), x.device().index(), g, r))
    return fall_back<aten::bernoulli__Tensor>(x, p, g);
  return x.copy_(r.lt(p.to(x.device())));
}
Tensor& bernoulli_out(const Tensor& p, Generator g, Tensor& out) {
  fit(out, p.sizes());
  return bernoulli_tensor_(out, p, g);
}
// The largest range that torch's own gives a dtype by default: what it holds exactly.
int64_t end_of(at::ScalarType t) {
  switch (t) {
    case at::kBool: return 2;
    case at::kByte: return 256;
    case at::kChar: return 128;
    case at::kShort: return int64_t{1} << 15;
    case at::kInt: return int64_t{1} << 31;
    case at::kHalf: return (int64_t{1} << 11) + 1;
    case at::kBFloat16: return (int64_t{1} << 8) + 1;
    case at::kFloat: return (int64_t{1} << 24) + 1;
    default: return 0;
  }
}
bool random_integers(Tensor& x, int64_t from, int64_t to, const Generator& g) {
  const auto n = uint64_t(x.numel());
  if (!n || from >= to || uint64_t(to) - uint64_t(from) > uint64_t{1} << 32) return false;
  Tensor r;
  if (!Call(op<"integers">())
           .in(draw_key(g, x.device().index(), n))
           .set("shape", x.sizes())
           .set("low", from)
           .set("high", to)
           .set("dtype", at::kLong)
           .make(r))
    return false;
  x.copy_(r);
  return true;
}
Tensor& random_from_(Tensor& x, int64_t from, std::optional<int64_t> to, Generator g) {
  const int64_t end = to ? *to : end_of(x.scalar_type());
  return random_integers(x, from, end, g) ? x : fall_back<aten::random__from>(x, from, to, g);
}
Tensor& random_to_(Tensor& x, int64_t to, Generator g) {
  return random_integers(x, 0, to, g) ? x : fall_back<aten::random__to>(x, to, g);
}
Tensor& random_(Tensor& x, Generator g) {
  return random_integers(x, 0, end_of(x.scalar_type()), g) ? x : fall_back<aten::random_>(x, g);
}

// The largest of log(p) + Gumbel noise: exponential races, as torch's own has them, without replacement.
Tensor multinomial(const Tensor& p, int64_t n, bool replacement, Generator g) {
  const bool fits = is_real_float(p) && p.numel() && n > 0 && (p.dim() == 1 || p.dim() == 2) &&
                    (!replacement || n == 1) && n <= p.size(-1);
  Tensor noise;
  if (!fits || !draw_like<"uniform">(p, g, noise)) return fall_back<aten::multinomial>(p, n, replacement, g);
  TORCH_CHECK(p.ge(0).logical_and(p.lt(std::numeric_limits<double>::infinity())).all().item().toBool(),
              "probability tensor contains either `inf`, `nan` or element < 0");
  TORCH_CHECK(
      p.gt(0).sum(-1).ge(replacement ? 1 : n).all().item().toBool(),
      "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample)");
  const Tensor race = p / noise.neg_().log1p_().neg_().clamp_min_(std::numeric_limits<float>::min());
  return n == 1 ? race.argmax(-1, true) : std::get<1>(race.topk(n));
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& x, double p, std::optional<bool> train) {
  Tensor r;
  if ((train && !*train) || !draw<"uniform">(x.sizes(), at::kFloat, x.device().index(), {}, r))
    return fall_back<aten::native_dropout>(x, p, train);
  const Tensor kept = r.ge(p);
  return {x * kept * (p == 1 ? 0. : 1 / (1 - p)), kept};
}
Tensor native_dropout_backward(const Tensor& grad, const Tensor& kept, double scale) { return grad * kept * scale; }
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::uniform_>(m, &uniform_);
  implement<aten::normal_>(m, &normal_);
  implement<aten::exponential_>(m, &exponential_);
  implement<aten::cauchy_>(m, &cauchy_);
  implement<aten::log_normal_>(m, &log_normal_);
  implement<aten::geometric_>(m, &geometric_);
  implement<aten::normal_Tensor_float>(m, &normal_of_mean);
  implement<aten::normal_float_Tensor>(m, &normal_of_std);
  implement<aten::normal_Tensor_Tensor>(m, &normal_of_both);
  implement<aten::bernoulli__float>(m, &bernoulli_);
  implement<aten::bernoulli__Tensor>(m, &bernoulli_tensor_);
  implement<aten::bernoulli_out>(m, &bernoulli_out);
  implement<aten::random__from>(m, &random_from_);
  implement<aten::random__to>(m, &random_to_);
  implement<aten::random_>(m, &random_);
  implement<aten::multinomial>(m, &multinomial);
  implement<aten::native_dropout>(m, &native_dropout);
  implement<aten::native_dropout_backward>(m, &native_dropout_backward);
}
}  // namespace dovetail_torch
