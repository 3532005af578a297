// An op along one axis: x as outer x axis x inner; the output is dense and has the same shape except for the
// axis.
#pragma once
#include "kernel.hpp"

namespace dovetail::cpu::DOVETAIL_CPU_ISA {
struct AxisRows {
  int64_t size, stride;  // of the axis, in x
  int64_t outer = 1, inner = 1;
  const DLTensor* x;
  int axis;

  AxisRows(const DLTensor* t, int64_t a) : size(t->shape[a]), stride(t->strides[a]), x(t), axis(int(a)) {
    for (int i = 0; i < axis; ++i) outer *= t->shape[i];
    for (int i = axis + 1; i < t->ndim; ++i) inner *= t->shape[i];
  }
  int64_t count() const { return outer * inner; }
  // The beginning of row (o, i) in x.
  int64_t offset(int64_t o, int64_t i) const {
    int64_t at = 0;
    for (int k = x->ndim; --k > axis; i /= x->shape[k]) at += i % x->shape[k] * x->strides[k];
    for (int k = axis; k-- > 0; o /= x->shape[k]) at += o % x->shape[k] * x->strides[k];
    return at;
  }
  // Whether the inner elements are contiguous in x.
  bool inner_is_dense() const {
    int64_t step = 1;
    for (int k = x->ndim; --k > axis; step *= x->shape[k])
      if (x->shape[k] != 1 && x->strides[k] != step) return false;
    return true;
  }
};
}  // namespace dovetail::cpu::DOVETAIL_CPU_ISA
