// The host side of kernels/common/slices.hpp.
#pragma once
#include <algorithm>
#include <initializer_list>

#include "kernels/common/slices.hpp"
#include "lines.hpp"

namespace gpu {
// Of x, which is indexed along an axis by all of `indices`.
inline Slices plan_slices(const dvt_call* c, const DLTensor* x, const DLTensor* indices, int64_t along,
                          uint64_t elements) {
  Slices how{};
  how.n = elements, how.count = divide_by(uint64_t(dvt::size(indices)));
  how.axis = along, how.size = x->shape[along], how.call = c->correlation_id;
  uint64_t inner = 1;
  for (int64_t axis = how.axis + 1; axis < x->ndim; ++axis) inner *= uint64_t(x->shape[axis]);
  how.inner = divide_by(inner);
  return how;
}
// Of a call of x, indices and axis.
inline Slices plan_slices(const dvt_call* c, uint64_t elements) {
  return plan_slices(c, c->in[0], c->in[1], dvt::Attrs(c).i64(0), elements);
}

// Slices that lie side by side in all operands are moved in the widest elements that their size and the addresses
// allow. Their bytes; of `bytes` each are the elements in memory.
inline uint32_t widen(Slices& how, uint32_t bytes, std::initializer_list<const void*> operands) {
  uint64_t fits = how.inner.value * bytes | pack_bytes;
  for (const void* p : operands) fits |= reinterpret_cast<uintptr_t>(p);
  const auto wide = std::max(uint32_t(fits & (~fits + 1)), bytes);  // the lowest bit that any of them has
  if (wide == bytes) return bytes;
  how.n = how.n * bytes / wide, how.inner = divide_by(how.inner.value * bytes / wide);
  return wide;
}
}  // namespace gpu
