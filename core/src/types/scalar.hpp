// One number of a dtype.
#pragma once
#include <cstddef>
#include <cstring>

#include "types/tensor_type.hpp"

namespace dovetail {
struct Scalar {
  DType dtype = DType::none;
  alignas(16) std::byte bits[16] = {};

  Scalar() = default;
  Scalar(DType t, const void* value) : dtype(t) { std::memcpy(bits, value, info(t).bytes()); }
  template <class T>
  T read() const {  // of the dtype that T is
    T value;
    std::memcpy(&value, bits, sizeof value);
    return value;
  }
};
// Integers out of range wrap, as they do on a device.
Scalar cast_scalar(const Scalar&, DType);
TensorType type_of(const Scalar&);  // 0-d
}  // namespace dovetail
