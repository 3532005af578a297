// Tensors for programs: dovetail_torch.compile turns them into arrays that share their buffers, and back.
#include <ATen/EmptyTensor.h>

#include "runtime.hpp"

namespace dovetail_torch {
namespace {
// The address of a dvr_tensor, good until the thread's next call and while the tensor lives.
int64_t address_of(const at::Tensor& t) {
  static thread_local dvr_tensor out;
  TORCH_CHECK_TYPE(t.is_privateuseone() && !t.is_conj() && !t.is_neg() && describe(t, out),
                   "dovetail: no program takes a tensor of ", t.scalar_type(), " on ", t.device(),
                   " with the layout ", t.layout());
  return reinterpret_cast<int64_t>(&out);
}

// Takes over the dvr_tensor at this address, which may have strides.
at::Tensor tensor_at(int64_t address, int64_t index) {
  const dvr_tensor& from = *reinterpret_cast<const dvr_tensor*>(address);
  at::Tensor t = wrap(from, c10::DeviceIndex(index));
  const c10::IntArrayRef sizes(from.view.shape, size_t(from.view.ndim));
  const c10::IntArrayRef strides(from.view.strides, size_t(from.view.ndim));
  if (t.numel() && strides != t.strides()) {
    t.storage().set_nbytes(at::detail::computeStorageNbytes(sizes, strides, t.element_size()));
    t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  }
  return t;
}
}  // namespace

TORCH_LIBRARY_FRAGMENT(dovetail, m) {
  m.def("address_of(Tensor x) -> int", &address_of);
  m.def("tensor_at(int address, int device) -> Tensor", &tensor_at);
}
}  // namespace dovetail_torch
