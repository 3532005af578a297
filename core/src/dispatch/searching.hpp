// Functions whose results' sizes depend on values. One number is read on the host; everything else stays on the
// device.
#pragma once
#include <vector>

#include "dispatch/invocation.hpp"

namespace dovetail {
// int64 positions of the elements that are not zero, in row-major order: one array of shape (count,) per axis.
// Throws Error(value) for an array without axes.
std::vector<Tensor> nonzero(const Tensor& x);

// The distinct values of x, sorted; NaNs are distinct from each other.
struct Unique {
  Tensor values, indices, inverse, counts;
};
// values_only: the others stay empty.
Unique unique(const Tensor& x, bool values_only);
}  // namespace dovetail
