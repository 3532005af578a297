// A tensor without its memory: dtype, shape and strides.
#pragma once
#include <cstring>
#include <span>

#include "types/dtype.hpp"

namespace dovetail {
struct TensorType {
  uint64_t numel = 0;
  DType dtype = DType::none;
  bool dense = false;  // row-major without gaps
  int32_t ndim = 0;
  int64_t dims[2 * DVT_MAX_NDIM];  // shape, then strides from DVT_MAX_NDIM on

  TensorType() {}  // not defaulted: TensorType{} would fill `dims` with zeros first
  TensorType(const TensorType& o) { *this = o; }
  TensorType& operator=(const TensorType& o) {
    numel = o.numel, dtype = o.dtype, dense = o.dense, ndim = o.ndim;
    if (ndim <= kFew) {  // without a call
      std::memcpy(dims, o.dims, sizeof(int64_t) * kFew);
      std::memcpy(dims + DVT_MAX_NDIM, o.dims + DVT_MAX_NDIM, sizeof(int64_t) * kFew);
    } else {
      std::memcpy(dims, o.dims, sizeof(int64_t) * ndim);
      std::memcpy(dims + DVT_MAX_NDIM, o.dims + DVT_MAX_NDIM, sizeof(int64_t) * ndim);
    }
    return *this;
  }

  int rank() const { return ndim; }
  int64_t size(int axis) const { return dims[axis]; }
  int64_t stride(int axis) const { return dims[DVT_MAX_NDIM + axis]; }
  int64_t& size(int axis) { return dims[axis]; }
  int64_t& stride(int axis) { return dims[DVT_MAX_NDIM + axis]; }
  std::span<const int64_t> shape() const { return {dims, size_t(ndim)}; }
  std::span<const int64_t> strides() const { return {dims + DVT_MAX_NDIM, size_t(ndim)}; }
  uint64_t bytes() const { return info(dtype).bytes(numel); }
  bool same_shape(const TensorType& o) const {
    return ndim == o.ndim && !std::memcmp(dims, o.dims, sizeof(int64_t) * ndim);
  }

  void set_shape(std::span<const int64_t> shape);  // dense; throws Error(value) where the size overflows
  void update_dense();                             // numel and dense from shape and strides

 private:
  static constexpr int kFew = 4;
};

// Returns false where two sizes differ and neither is 1. `out` has DVT_MAX_NDIM elements and may be a's memory.
bool broadcast_shapes(std::span<const int64_t> a, std::span<const int64_t> b, int64_t* out, int* rank);
bool broadcasts_to(std::span<const int64_t> from, std::span<const int64_t> to);
}  // namespace dovetail
