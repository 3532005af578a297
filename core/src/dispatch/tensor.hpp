// An array's value: a DLTensor that kernels read in place, shape and strides inline, and a share of a buffer.
#pragma once
#include <cstring>
#include <initializer_list>
#include <span>

#include "device/device.hpp"

namespace dovetail {
struct Tensor {
  DLTensor view{};             // byte_offset is 0: data includes it
  Storage* storage = nullptr;  // none: abstract (while a decomposition is traced), or a scalar in host memory
  Device* device = nullptr;    // none: a scalar in host memory
  uint64_t numel = 0;
  DType dtype = DType::none;
  bool dense = false;              // row-major without gaps
  int64_t dims[2 * DVT_MAX_NDIM];  // shape, then strides from DVT_MAX_NDIM on

  Tensor() { set_rank(0); }
  Tensor(const Tensor& o) {
    assign(o);
    if (storage) retain(storage);
  }
  Tensor(Tensor&& o) noexcept {
    assign(o);
    o.storage = nullptr;
  }
  Tensor& operator=(Tensor o) noexcept {
    Storage* old = storage;
    assign(o);
    o.storage = old;
    return *this;
  }
  ~Tensor() {
    if (storage) release(storage);
  }

  int rank() const { return view.ndim; }
  int64_t size(int axis) const { return dims[axis]; }
  int64_t stride(int axis) const { return dims[DVT_MAX_NDIM + axis]; }
  int64_t& size(int axis) { return dims[axis]; }
  int64_t& stride(int axis) { return dims[DVT_MAX_NDIM + axis]; }
  std::span<const int64_t> shape() const { return {dims, size_t(rank())}; }
  std::span<const int64_t> strides() const { return {dims + DVT_MAX_NDIM, size_t(rank())}; }
  uint64_t bytes() const { return numel * info(dtype).bytes; }
  bool same_shape(const Tensor& o) const {
    return rank() == o.rank() && !std::memcmp(dims, o.dims, sizeof(int64_t) * rank());
  }

  void set_rank(int rank) { view.ndim = rank, view.shape = dims, view.strides = dims + DVT_MAX_NDIM; }
  void set_shape(std::span<const int64_t> shape);  // dense; throws Error(value) where the size overflows
  void set_dense();                                // strides, numel and dense from the shape
  void update_dense();                             // numel and dense from shape and strides
  void set_type(DType t, Device* d) {
    dtype = t, device = d, view.dtype = info(t).dl;
    view.device = d ? d->dl : dl_device(1 /* kDLCPU */, 0);
  }
  void own(Storage* s) { storage = s, view.data = s->data; }  // takes over the caller's reference

 private:
  void assign(const Tensor& o) {
    std::memcpy(static_cast<void*>(this), &o, offsetof(Tensor, dims));
    set_rank(o.rank());
    std::memcpy(dims, o.dims, sizeof(int64_t) * rank());
    std::memcpy(dims + DVT_MAX_NDIM, o.dims + DVT_MAX_NDIM, sizeof(int64_t) * rank());
    if (o.view.data == &o.dims[DVT_MAX_NDIM]) {  // a host scalar: its value lies in the place of its strides
      std::memcpy(dims + DVT_MAX_NDIM, o.dims + DVT_MAX_NDIM, 2 * sizeof(int64_t));
      view.data = &dims[DVT_MAX_NDIM];
    }
  }
};
}  // namespace dovetail
