// Shared by the views.
#pragma once
#include "rules/rules.hpp"

namespace dovetail::rules {
// Whether output 0 can share operand 0's buffer: a host scalar has none, as its value lies in the Tensor itself.
inline bool can_share(const Invocation& inv) { return inv.operand(0).device || !inv.operand(0).view.data; }

// Gives output 0, whose strides are set, the operand's buffer from `offset` elements on.
inline bool share(Invocation& inv, int64_t offset = 0) {
  const Tensor& x = inv.operand(0);
  Tensor& out = *inv.out[0];
  out.update_dense();
  if (x.storage) retain(x.storage), out.own(x.storage);
  out.view.data = x.view.data;
  if (offset && out.numel) out.view.data = static_cast<char*>(out.view.data) + offset * info(x.dtype).bytes;
  return true;
}
}  // namespace dovetail::rules
