// An array's value: a DLTensor that kernels read in place, shape and strides inline, and a share of a buffer.
#pragma once
#include <initializer_list>

#include "device/device.hpp"
#include "types/tensor_type.hpp"

namespace dovetail {
struct Tensor : TensorType {
  DLTensor view{};             // byte_offset is 0: data includes it
  Storage* storage = nullptr;  // none: abstract (while a decomposition is traced), or a scalar in host memory
  Device* device = nullptr;    // none: a scalar in host memory

  Tensor() { view.shape = dims, view.strides = dims + DVT_MAX_NDIM; }
  Tensor(const Tensor& o) : TensorType(o) {
    assign_view(o);
    if (storage) retain(storage);
  }
  Tensor(Tensor&& o) noexcept : TensorType(o) {
    assign_view(o);
    o.storage = nullptr;
  }
  Tensor& operator=(Tensor o) noexcept {
    Storage* old = storage;
    TensorType::operator=(o);
    assign_view(o);
    o.storage = old;
    return *this;
  }
  ~Tensor() {
    if (storage) release(storage);
  }
  void drop_storage() {
    if (Storage* const s = std::exchange(storage, nullptr)) release(s);
  }
  // *this = o, with one copy of the shape; `this` has no storage.
  void share(const Tensor& o) {
    TensorType::operator=(o);
    assign_view(o);
    if (storage) retain(storage);
  }

  void set_rank(int rank) { ndim = view.ndim = rank; }
  void set_shape(std::span<const int64_t> shape) { TensorType::set_shape(shape), view.ndim = ndim; }
  void set_dense() { set_shape(shape()); }  // strides, numel and dense from the shape
  void set_type(DType t, Device* d) { dtype = t, set_device(d); }
  // After a shape rule has set dtype and shape.
  void set_device(Device* d) {
    device = d, view.ndim = ndim, view.dtype = info(dtype).dl;
    view.device = d ? d->dl : dl_device(1 /* kDLCPU */, 0);
  }
  void own(Storage* s) { storage = s, view.data = s->data; }  // takes over the caller's reference
  // Is it alone in holding its memory, which is the pool's?
  bool is_alone() const {
    return storage && storage->refs.load(std::memory_order_acquire) == 1 && is_pooled(*storage);
  }
  // The memory of `other`, whose value ends; `this` has none.
  void take_over(const Tensor& other) {
    value_changes(*other.storage);
    retain(other.storage);
    own(other.storage);
    view.data = other.view.data;
  }

 private:
  void assign_view(const Tensor& o) {
    view = o.view, storage = o.storage, device = o.device;
    view.shape = dims, view.strides = dims + DVT_MAX_NDIM;
    if (o.view.data == &o.dims[DVT_MAX_NDIM]) {  // a host scalar: its value lies in the place of its strides
      std::memcpy(dims + DVT_MAX_NDIM, o.dims + DVT_MAX_NDIM, 2 * sizeof(int64_t));
      view.data = &dims[DVT_MAX_NDIM];
    }
  }
};
// inference_of() reads pointers to Tensors as pointers to TensorTypes: the base must lie at the start.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(Tensor, numel) == 0 && offsetof(TensorType, numel) == 0);
#pragma GCC diagnostic pop
}  // namespace dovetail
