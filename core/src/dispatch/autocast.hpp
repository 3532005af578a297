// Mixed precision: what dovetail.autocast() is made of. Floating-point operands of some ops are cast before the
// call, by the op's policy (op_autocast_lower, op_autocast_float32); integers, bools, float64 and float8 never are.
#pragma once
#include <memory>

#include "dispatch/tensor.hpp"
#include "rules/op.hpp"

namespace dovetail {
struct Autocast {
  DType dtype = DType::none;       // of "lower"; none: the device's default
  const Device* device = nullptr;  // whose calls it is about; nullptr: of every device
  bool enabled = true;
  std::shared_ptr<const Autocast> outer;  // for calls on other devices
};

// bfloat16 where the device has a kernel for products of it, else float16 where it has one of those, else bfloat16.
DType default_autocast_dtype(const Device&);
// The dtype of "lower" for calls on the device; none: nothing is cast. `state` may be nullptr.
DType lower_dtype(const Autocast* state, const Device&);
// The dtype that operand `i` of the op gets, where `lower` is that of "lower"; `given` where it stays as it is.
DType autocast_dtype(const Op&, int i, DType given, DType lower);

// A row-major cast. That of a value which is cast again is kept as long as the value lives, as packed operands are
// (device/packs.hpp): weights are cast once. It goes when memory is short.
Tensor cast_and_keep(const Tensor&, DType, Device&);
}  // namespace dovetail
