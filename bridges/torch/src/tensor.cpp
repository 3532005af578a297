// Tensors without values: made, viewed, resized. Views are torch's own metadata on our storage.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>

#include "runtime.hpp"

namespace dovetail_torch {
using at::Tensor;

namespace {
constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);
c10::DeviceIndex index_of(const std::optional<at::Device>& d) {
  return or_current(d ? d->index() : c10::DeviceIndex(-1));
}

Tensor empty_memory_format(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                           std::optional<at::Device> device, std::optional<bool>,
                           std::optional<at::MemoryFormat> format) {
  const OnDevice on(index_of(device));
  return at::detail::empty_generic(size, allocator(), kKeys, c10::dtype_or_default(dtype), format);
}
Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                     std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const OnDevice on(index_of(device));
  return at::detail::empty_strided_generic(size, stride, allocator(), kKeys, c10::dtype_or_default(dtype));
}

Tensor as_strided(const Tensor& t, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                  std::optional<c10::SymInt> offset) {
  return at::cpu::as_strided_symint(t, size, stride, std::move(offset));
}
Tensor view(const Tensor& t, c10::SymIntArrayRef size) {
  return at::native::view(t, C10_AS_INTARRAYREF_SLOW(size));
}
Tensor reshape_alias(const Tensor& t, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(t, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

const Tensor& resize_(const Tensor& t, c10::SymIntArrayRef size, std::optional<at::MemoryFormat> format) {
  return resize_tensor(t, C10_AS_INTARRAYREF_SLOW(size), format);
}
Tensor& set_tensor(Tensor& t, const Tensor& from) { return at::native::set_tensor_(t, from); }
Tensor& set_storage(Tensor& t, at::Storage from) { return at::native::set_(t, std::move(from)); }
Tensor& set_storage_offset(Tensor& t, at::Storage from, c10::SymInt offset, c10::SymIntArrayRef size,
                           c10::SymIntArrayRef stride) {
  return at::cpu::set__symint(t, std::move(from), std::move(offset), size, stride);
}
void record_stream(Tensor& t, at::Stream stream) { check(dvr_use(buffer_of(t), to_runtime(stream), 0)); }
}  // namespace

Tensor empty(c10::IntArrayRef size, at::ScalarType dtype, c10::DeviceIndex index) {
  const OnDevice on(index);
  return at::detail::empty_generic(size, allocator(), kKeys, dtype, std::nullopt);
}

// torch's own resize copies on the host and allocates on the current device.
const Tensor& resize_tensor(const Tensor& t, c10::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  auto* const impl = t.unsafeGetTensorImpl();
  if (impl->sizes() != size) {
    const int64_t n = c10::multiply_integers(size);
    const size_t bytes = size_t(n + t.storage_offset()) * t.element_size();
    if (n && t.storage().nbytes() < bytes) resize_storage(t.storage(), bytes);
    impl->set_sizes_contiguous(size);
  }
  if (format && *format != at::MemoryFormat::Preserve) impl->empty_tensor_restride(*format);
  return t;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty_memory_format);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &as_strided);
  m.impl("view", &view);
  m.impl("_reshape_alias", &reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
  m.impl("resize_", &resize_);
  m.impl("record_stream", &record_stream);
  m.impl("set_.source_Tensor", &set_tensor);
  m.impl("set_.source_Storage", &set_storage);
  m.impl("set_.source_Storage_storage_offset", &set_storage_offset);
}
}  // namespace dovetail_torch
