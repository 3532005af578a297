// Reductions, scans and softmax.
#include <ATen/ops/_cummax_helper_ops.h>
#include <ATen/ops/_cummin_helper_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_logcumsumexp_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/all_ops.h>
#include <ATen/ops/amax_ops.h>
#include <ATen/ops/amin_ops.h>
#include <ATen/ops/any_ops.h>
#include <ATen/ops/argmax_ops.h>
#include <ATen/ops/argmin_ops.h>
#include <ATen/ops/count_nonzero_ops.h>
#include <ATen/ops/cumprod_ops.h>
#include <ATen/ops/cumsum_ops.h>
#include <ATen/ops/linalg_vector_norm_ops.h>
#include <ATen/ops/max_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/min_ops.h>
#include <ATen/ops/norm_ops.h>
#include <ATen/ops/prod_ops.h>
#include <ATen/ops/std_mean_ops.h>
#include <ATen/ops/std_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/var_mean_ops.h>
#include <ATen/ops/var_ops.h>

#include <ATen/WrapDimUtils.h>

#include "call.hpp"

namespace dovetail_torch {
namespace {
namespace aten = at::_ops;
using OptionalAxes = at::OptionalIntArrayRef;
using OptionalDType = std::optional<at::ScalarType>;

int64_t axis_of(const Tensor& x, int64_t dim) { return at::maybe_wrap_dim(dim, x.dim()); }

// Without torch's inference: of floats, whose sums have their dtype.
template <class Aten, Name name>
Tensor reduced_new(const Tensor& x, OptionalAxes dim, bool keep, OptionalDType dtype) {
  Tensor r;
  if (is_real_float(x) && (!dtype || *dtype == x.scalar_type())) {
    const Axes axes = axes_of(x.dim(), dim);
    if (Call(op<name>()).in(x).set("axis", axes).set("keepdims", keep).make(r)) return r;
  }
  return Aten::redispatch(kStructured, x, dim, keep, dtype);
}
Tensor& sum_out(const Tensor& x, OptionalAxes dim, bool keep, OptionalDType dtype, Tensor& out) {
  const Axes axes = axes_of(x.dim(), dim);
  const auto as = out.scalar_type();
  if (Call(op<"sum">()).in(x, as).set("axis", axes).set("dtype", as).set("keepdims", keep).into(out)) return out;
  return fall_back<aten::sum_IntList_out>(x, dim, keep, dtype, out);
}
Tensor& mean_out(const Tensor& x, OptionalAxes dim, bool keep, OptionalDType dtype, Tensor& out) {
  const Axes axes = axes_of(x.dim(), dim);
  if (Call(op<"mean">()).in(x, out.scalar_type()).set("axis", axes).set("keepdims", keep).into(out)) return out;
  return fall_back<aten::mean_out>(x, dim, keep, dtype, out);
}
template <class Aten, Name name>
Tensor& extreme_out(const Tensor& x, c10::IntArrayRef dim, bool keep, Tensor& out) {
  const Axes axes = axes_of(x.dim(), dim);
  const bool served = x.numel() && Call(op<name>()).in(x).set("axis", axes).set("keepdims", keep).into(out);
  return served ? out : fall_back<Aten>(x, dim, keep, out);
}
template <class Aten, Name name>
Tensor extreme_of_all(const Tensor& x) {
  Tensor r;
  return x.numel() && Call(op<name>()).in(x).make(r) ? r : fall_back<Aten>(x);
}
// The values and where they are.
template <class Aten, Name value, Name place>
std::tuple<Tensor&, Tensor&> extreme_along(const Tensor& x, int64_t dim, bool keep, Tensor& values,
                                           Tensor& indices) {
  if (x.dim() && x.numel()) {
    const int64_t axis = axis_of(x, dim);
    const Axes axes{axis};
    if (Call(op<place>()).in(x).set("axis", axis).set("keepdims", keep).into(indices) &&
        Call(op<value>()).in(x).set("axis", axes).set("keepdims", keep).into(values))
      return {values, indices};
  }
  if (!x.dim()) {
    store(x, values);
    fit(indices, {});
    indices.zero_();
    return {values, indices};
  }
  return fall_back<Aten>(x, dim, keep, values, indices);
}

template <Name name>
bool logical(const Tensor& x, c10::IntArrayRef axes, bool keep, Tensor& out) {
  if (out.scalar_type() == at::kBool)
    return Call(op<name>()).in(x).set("axis", axes).set("keepdims", keep).into(out);
  Tensor r;  // any and all of uint8 are uint8
  if (out.scalar_type() != at::kByte || !Call(op<name>()).in(x).set("axis", axes).set("keepdims", keep).make(r))
    return false;
  store(r, out);
  return true;
}
template <class Aten, Name name>
Tensor& logical_out(const Tensor& x, int64_t dim, bool keep, Tensor& out) {
  const Axes axes = axes_of(x.dim(), c10::IntArrayRef(dim));
  return logical<name>(x, axes, keep, out) ? out : fall_back<Aten>(x, dim, keep, out);
}
template <class Aten, Name name>
Tensor& logical_all_out(const Tensor& x, Tensor& out) {
  return logical<name>(x, axes_of(x.dim(), {}), false, out) ? out : fall_back<Aten>(x, out);
}
template <class Aten, Name name>
Tensor& logical_dims_out(const Tensor& x, OptionalAxes dim, bool keep, Tensor& out) {
  return logical<name>(x, axes_of(x.dim(), dim), keep, out) ? out : fall_back<Aten>(x, dim, keep, out);
}

template <class Aten, Name name>
Tensor& place_out(const Tensor& x, std::optional<int64_t> dim, bool keep, Tensor& out) {
  Call call(op<name>());
  call.in(x);
  if (dim && x.dim()) {
    call.set("axis", axis_of(x, *dim)).set("keepdims", keep);
    return x.numel() && call.into(out) ? out : fall_back<Aten>(x, dim, keep, out);
  }
  const Axes shape(keep ? size_t(x.dim()) : 0, 1);
  if (x.numel() && out.sizes() == c10::IntArrayRef(shape) && call.over(out.view(c10::IntArrayRef{}))) return out;
  Tensor r;
  return x.numel() && call.make(r) ? store(r.view(shape), out) : fall_back<Aten>(x, dim, keep, out);
}

template <class Aten, Name name>
Tensor& scan_out(const Tensor& x, int64_t dim, OptionalDType dtype, Tensor& out) {
  const auto as = out.scalar_type();
  if (dtype && *dtype != as) return fall_back<Aten>(x, dim, dtype, out);
  if (!x.dim()) return store(x.to(as), out);
  if (Call(op<name>()).in(x, as).set("axis", axis_of(x, dim)).set("dtype", as).into(out)) return out;
  return fall_back<Aten>(x, dim, dtype, out);
}
template <class Aten, Name name>
void scan_extreme(const Tensor& x, Tensor& values, Tensor& indices, int64_t dim) {
  if (x.dim() && Call(op<name>()).in(x).set("axis", axis_of(x, dim)).into(values, indices)) return;
  fall_back<Aten>(x, values, indices, dim);
}
Tensor logcumsumexp(const Tensor& x, int64_t dim) {
  Tensor r;
  if (!x.dim()) return x.clone();
  if (Call(op<"logcumsumexp">()).in(x).set("axis", axis_of(x, dim)).make(r)) return r;
  return fall_back<aten::_logcumsumexp>(x, dim);
}

Tensor& prod_out(const Tensor& x, int64_t dim, bool keep, OptionalDType dtype, Tensor& out) {
  const Axes axes = axes_of(x.dim(), c10::IntArrayRef(dim));
  const auto as = out.scalar_type();
  if (Call(op<"prod">()).in(x, as).set("axis", axes).set("dtype", as).set("keepdims", keep).into(out)) return out;
  return fall_back<aten::prod_int_out>(x, dim, keep, dtype, out);
}
Tensor prod(const Tensor& x, OptionalDType dtype) {
  const auto as = dtype ? *dtype : c10::isIntegralType(x.scalar_type(), true) ? at::kLong : x.scalar_type();
  Tensor r;
  return Call(op<"prod">()).in(x, as).set("dtype", as).make(r) ? r : fall_back<aten::prod>(x, dtype);
}

Tensor& vector_norm_out(const Tensor& x, const Scalar& ord, OptionalAxes dim, bool keep, OptionalDType dtype,
                        Tensor& out) {
  const Axes axes = axes_of(x.dim(), dim);
  const bool served = x.numel() && !x.is_complex() &&
                      Call(op<"vector_norm">())
                          .in(x, out.scalar_type())
                          .set("axis", axes)
                          .set("keepdims", keep)
                          .set("ord", ord.toDouble())
                          .into(out);
  return served ? out : fall_back<aten::linalg_vector_norm_out>(x, ord, dim, keep, dtype, out);
}
Tensor& norm_out(const Tensor& x, const std::optional<Scalar>& p, c10::IntArrayRef dim, bool keep, Tensor& out) {
  if (x.numel() && !x.is_complex()) return vector_norm_out(x, p ? *p : Scalar(2.), dim, keep, {}, out);
  return fall_back<aten::norm_out>(x, p, dim, keep, out);
}

// var and std, of floating types alone.
template <Name name>
bool spread(const Tensor& x, OptionalAxes dim, const std::optional<Scalar>& correction, bool keep, Tensor& r) {
  const Axes axes = axes_of(x.dim(), dim);
  const double k = correction ? correction->toDouble() : 1;
  return is_real_float(x) &&
         Call(op<name>()).in(x).set("axis", axes).set("correction", k).set("keepdims", keep).make(r);
}
template <class Aten, Name name>
Tensor spread_of(const Tensor& x, OptionalAxes dim, const std::optional<Scalar>& correction, bool keep) {
  Tensor r;
  return spread<name>(x, dim, correction, keep, r) ? r : fall_back<Aten>(x, dim, correction, keep);
}
template <class Aten, Name name>
Tensor& spread_out(const Tensor& x, OptionalAxes dim, const std::optional<Scalar>& correction, bool keep,
                   Tensor& out) {
  Tensor r;
  if (!spread<name>(x, dim, correction, keep, r)) return fall_back<Aten>(x, dim, correction, keep, out);
  return store(r, out);
}
template <class Aten, Name name>
std::tuple<Tensor, Tensor> spread_and_mean(const Tensor& x, OptionalAxes dim,
                                           const std::optional<Scalar>& correction, bool keep) {
  Tensor r;
  if (!spread<name>(x, dim, correction, keep, r)) return fall_back<Aten>(x, dim, correction, keep);
  return {r, x.mean(dim, keep)};
}

Tensor count_nonzero(const Tensor& x, c10::IntArrayRef dim) {
  const Axes axes = axes_of(x.dim(), dim);
  Tensor r;
  return Call(op<"count_nonzero">()).in(x).set("axis", axes).make(r)
             ? r
             : fall_back<aten::count_nonzero_dim_IntList>(x, dim);
}

template <class Aten, Name name>
Tensor& softmax_out(const Tensor& x, int64_t dim, bool half_to_float, Tensor& out) {
  if (x.dim() && x.numel() && Call(op<name>()).in(x, out.scalar_type()).set("axis", axis_of(x, dim)).into(out))
    return out;
  return fall_back<Aten>(x, dim, half_to_float, out);
}
}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  implement<aten::sum_dim_IntList>(m, &reduced_new<aten::sum_dim_IntList, "sum">);
  implement<aten::mean_dim>(m, &reduced_new<aten::mean_dim, "mean">);
  implement<aten::sum_IntList_out>(m, &sum_out);
  implement<aten::mean_out>(m, &mean_out);
  implement<aten::amax_out>(m, &extreme_out<aten::amax_out, "max">);
  implement<aten::amin_out>(m, &extreme_out<aten::amin_out, "min">);
  implement<aten::max>(m, &extreme_of_all<aten::max, "max">);
  implement<aten::min>(m, &extreme_of_all<aten::min, "min">);
  implement<aten::max_dim_max>(m, &extreme_along<aten::max_dim_max, "max", "argmax">);
  implement<aten::min_dim_min>(m, &extreme_along<aten::min_dim_min, "min", "argmin">);
  implement<aten::any_out>(m, &logical_out<aten::any_out, "any">);
  implement<aten::all_out>(m, &logical_out<aten::all_out, "all">);
  implement<aten::any_all_out>(m, &logical_all_out<aten::any_all_out, "any">);
  implement<aten::all_all_out>(m, &logical_all_out<aten::all_all_out, "all">);
  implement<aten::any_dims_out>(m, &logical_dims_out<aten::any_dims_out, "any">);
  implement<aten::all_dims_out>(m, &logical_dims_out<aten::all_dims_out, "all">);
  implement<aten::argmax_out>(m, &place_out<aten::argmax_out, "argmax">);
  implement<aten::argmin_out>(m, &place_out<aten::argmin_out, "argmin">);
  implement<aten::cumsum_out>(m, &scan_out<aten::cumsum_out, "cumulative_sum">);
  implement<aten::cumprod_out>(m, &scan_out<aten::cumprod_out, "cumulative_prod">);
  implement<aten::_cummax_helper>(m, &scan_extreme<aten::_cummax_helper, "cummax">);
  implement<aten::_cummin_helper>(m, &scan_extreme<aten::_cummin_helper, "cummin">);
  implement<aten::_logcumsumexp>(m, &logcumsumexp);
  implement<aten::prod_int_out>(m, &prod_out);
  implement<aten::prod>(m, &prod);
  implement<aten::linalg_vector_norm_out>(m, &vector_norm_out);
  implement<aten::norm_out>(m, &norm_out);
  implement<aten::var_correction>(m, &spread_of<aten::var_correction, "var">);
  implement<aten::std_correction>(m, &spread_of<aten::std_correction, "std">);
  implement<aten::var_correction_out>(m, &spread_out<aten::var_correction_out, "var">);
  implement<aten::std_correction_out>(m, &spread_out<aten::std_correction_out, "std">);
  implement<aten::var_mean_correction>(m, &spread_and_mean<aten::var_mean_correction, "var">);
  implement<aten::std_mean_correction>(m, &spread_and_mean<aten::std_mean_correction, "std">);
  implement<aten::count_nonzero_dim_IntList>(m, &count_nonzero);
  implement<aten::_softmax_out>(m, &softmax_out<aten::_softmax_out, "softmax">);
  implement<aten::_log_softmax_out>(m, &softmax_out<aten::_log_softmax_out, "log_softmax">);
}
}  // namespace dovetail_torch
