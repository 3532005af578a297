#include "call.hpp"

#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/Resize.h>

#include <limits>

namespace dovetail_torch {

dvr_tensor& Call::next() {
  dvr_tensor* t;
  if (in_.size() < kNear) t = &near_[in_.size()];
  else t = far_.emplace_back(std::make_unique<dvr_tensor>()).get();
  in_.push_back(t);
  return *t;
}

Scalar value_of(const Tensor& t) {
  if (!t.unsafeGetTensorImpl()->is_wrapped_number()) return t.item();
  switch (t.scalar_type()) {
    case at::kDouble: return *t.const_data_ptr<double>();
    case at::kLong: return *t.const_data_ptr<int64_t>();
    default: return t.item();
  }
}

Call& Call::in(const Tensor& t) {
  if (!t.defined()) return in_.push_back(nullptr), *this;
  if (t.is_cpu() && t.dim() == 0) return number(value_of(t));
  if (!t.is_privateuseone() || (device_ >= 0 && t.device().index() != device_)) [[unlikely]]
    expect_same_device(torch_device(std::max<c10::DeviceIndex>(device_, 0)), t);
  device_ = t.device().index();
  if (t.is_conj() || t.is_neg()) return in(kept_.emplace_back(t.resolve_conj().resolve_neg()));
  served_ = describe(t, next()) && served_;
  return *this;
}

Call& Call::in(const Tensor& t, at::ScalarType as) {
  if (!t.defined() || t.scalar_type() == as || (t.is_cpu() && t.dim() == 0)) return in(t);
  return in(kept_.emplace_back(t.to(as)));
}

Call& Call::positions(const Tensor& t) {
  if (t.scalar_type() == at::kInt) return positions(t.to(at::kLong));
  if (t.scalar_type() != at::kLong || !t.is_privateuseone()) return in(t);
  Tensor r;
  if (!Call(op<"bitwise_and">()).in(t).number(Scalar(std::numeric_limits<int64_t>::max())).make(r))
    return served_ = false, *this;
  return in(kept_.emplace_back(std::move(r)));  // far behind the end: raise() says which they were
}

Call& Call::number(const Scalar& value) {
  dvr_tensor& t = next();
  if (value.isBoolean()) dvr_number_bool(&t, value.toBool());
  else if (value.isIntegral(false)) dvr_number_i64(&t, value.toLong());
  else if (value.isFloatingPoint()) dvr_number_f64(&t, value.toDouble());
  else dvr_number_c128(&t, value.toComplexDouble().real(), value.toComplexDouble().imag());
  return *this;
}

Call& Call::put(const char* name, dvt_attr value) {
  TORCH_INTERNAL_ASSERT(n_attrs_ < std::size(attrs_));
  attrs_[n_attrs_++] = {name, value};
  return *this;
}

Call& Call::set(const char* name, at::ScalarType value) {
  dvt_attr a{DVT_A_DTYPE, 1, {}};
  served_ = to_dl(value, a.v.dt) && served_;
  return put(name, a);
}

bool Call::run(dvr_tensor* results, uint32_t n) {
  const dvr_status status = dvr_call(op_, device_ < 0 ? nullptr : device_at(device_).handle, in_.data(),
                                     uint32_t(in_.size()), attrs_, uint32_t(n_attrs_), results, n, DVR_OWN_RESULTS);
  if (status == DVR_OK) [[likely]] {
    if (counts_calls()) count_call();
    return true;
  }
  if (!is_refusal(status)) raise(status);
  return false;
}

bool Call::into_empty(const Tensor& out) {
  if (out.numel() || !out.is_privateuseone()) return false;
  Tensor result, to = out;
  return make(result) && (store(result, to), true);
}

void expect_same_device(c10::Device device, const Tensor& t) {
  TORCH_CHECK(t.device() == device,
              "Expected all tensors to be on the same device, but found at least two devices, ", device, " and ",
              t.device(), "!");
}

Axes axes_of(int64_t ndim, at::OptionalIntArrayRef dim) {
  Axes axes;
  const bool all = !dim || dim->empty();
  const auto named = all ? std::bitset<at::dim_bitset_size>() : at::dim_list_to_bitset(*dim, size_t(ndim));
  for (int64_t i = 0; i < ndim; ++i)
    if (all || named[size_t(i)]) axes.push_back(i);
  return axes;
}

void fit(const Tensor& out, c10::IntArrayRef size) { at::native::resize_output(out, size); }
Tensor& store(const Tensor& result, Tensor& out) {
  TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()), "result type ", result.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  expect_same_device(result.device(), out);
  fit(out, result.sizes());
  return out.copy_(result);
}

}  // namespace dovetail_torch
