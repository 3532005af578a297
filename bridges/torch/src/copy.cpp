// Values between tensors, devices and the host.
#include <ATen/Functions.h>

#include "call.hpp"
#include "memory.hpp"

namespace dovetail_torch {
namespace {
bool needs_host(const Tensor& from, const Tensor& to) {
  return from.is_neg() != to.is_neg() || from.is_conj() != to.is_conj() || from.is_complex() != to.is_complex();
}
Tensor resolved(const Tensor& host) { return host.resolve_conj().resolve_neg(); }

// The bytes of a dtype that the runtime does not have, as one that it has.
Tensor as_bytes(const Tensor& t) {
  const auto size = t.element_size();
  return t.view(size == 4 ? at::kInt : size == 2 ? at::kShort : size == 8 ? at::kLong : at::kByte);
}

// `host` is row-major, of the sizes and dtype of `to`, and without conjugate or negative bits.
void write(const Tensor& to, const Tensor& host, bool non_blocking) {
  if (to.is_conj()) return write(to.conj(), resolved(host.conj()).contiguous(), false);
  if (to.is_neg()) return write(to._neg_view(), resolved(host.neg()).contiguous(), false);
  dvr_tensor t;
  if (!describe(to, t)) return write(as_bytes(to), as_bytes(host), non_blocking);
  if (non_blocking && to.is_contiguous() && is_pinned(host.const_data_ptr()))
    check(dvr_write_async(&t, host.const_data_ptr(), nullptr));
  else check(dvr_write(&t, host.const_data_ptr()));
}

void from_host(const Tensor& from, const Tensor& to, bool non_blocking) {
  write(to, resolved(from).to(to.scalar_type()).expand(to.sizes()).contiguous(), non_blocking);
}

void onto_host(const Tensor& from, const Tensor& to, bool non_blocking) {
  dvr_tensor t;
  const bool plain = from.scalar_type() == to.scalar_type() && to.is_contiguous() && from.sizes() == to.sizes() &&
                     !needs_host(from, to);
  if (!plain || !describe(from, t)) {
    const_cast<Tensor&>(to).copy_(to_host(from));
    return;
  }
  if (non_blocking && from.is_contiguous() && is_pinned(to.const_data_ptr()))
    check(dvr_read_async(&t, to.mutable_data_ptr(), nullptr));
  else check(dvr_read(&t, to.mutable_data_ptr()));
}

void on_devices(const Tensor& from, const Tensor& to) {
  dvr_tensor source, target;
  if (!needs_host(from, to) && describe(from, source) && describe(to, target)) {
    const dvr_status status = dvr_copy(&target, &source);
    if (status == DVR_OK) return;
    if (!is_refusal(status)) raise(status);
  }
  from_host(to_host(from), to, false);
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) {
  if (to.numel() == 0) return to;
  if (from._is_zerotensor()) return const_cast<Tensor&>(to).zero_();  // it has no memory
  if (from.is_cpu()) return from_host(from, to, non_blocking), to;
  const Tensor full = from.sizes() == to.sizes() ? from : from.expand(to.sizes());
  if (to.is_cpu()) onto_host(full, to, non_blocking);
  else on_devices(full, to);
  return to;
}
Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  resize_tensor(to, from.sizes());
  return copy_from(from, to, false);
}
Scalar local_scalar_dense(const Tensor& t) { return to_host(t).item(); }
}  // namespace

Tensor to_host(const Tensor& t) {
  const auto options = t.options().device(at::kCPU);
  if (t._is_zerotensor()) return at::zeros(t.sizes(), options);
  Tensor host = at::empty(t.sizes(), options);
  dvr_tensor d;
  if (t.numel() == 0) return host;
  if (describe(t, d)) check(dvr_read(&d, host.mutable_data_ptr()));
  else {
    TORCH_CHECK_TYPE(t.dim() <= DVT_MAX_NDIM && buffer_of(t), "dovetail: a tensor without memory, or of more than ",
                     DVT_MAX_NDIM, " axes, cannot be read");
    host = to_host(as_bytes(t)).view(t.scalar_type());  // of equal size, so with any strides
  }
  if (t.is_conj()) host._set_conj(true);
  if (t.is_neg()) host._set_neg(true);
  return host;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar_dense);
}
// copy_from reads and writes these bits itself.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
}  // namespace dovetail_torch
