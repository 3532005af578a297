// The order in which a call sorts (kernels/common/order.hpp).
#pragma once
#include "gpu/by_type.hpp"
#include "kernels/common/order.hpp"

namespace gpu {
inline Order order_of(DLDataType type, bool descending) {
  Order order{Numbers::unsigned_integers, descending, 0};
  if (type.code == DVT_INT) order.numbers = Numbers::signed_integers;
  if (!is_float(type)) return order;
  order.numbers = Numbers::floats;
  order.infinity = type.code == DVT_BFLOAT ? 0x7f80
                   : type.bits == 16       ? 0x7c00
                   : type.bits == 32       ? 0x7f800000
                                           : uint64_t{0x7ff} << 52;
  return order;
}

// Kernels keep indices in 32 bits.
inline dvt_status check_sortable(uint64_t size) {
  if (size >> 32 == 0) return DVT_OK;
  return DVT_FAIL(DVT_INVALID, "[sort] the axis is too long: got %llu elements, expected less than 2^32; split it",
                  (unsigned long long)size);
}

// sort(device, call, values, indices) with one of the two results.
template <dvt_status (*sort)(dvt_device*, const dvt_call*, void*, void*)>
dvt_status run_sort(dvt_device* d, const dvt_call* c) {
  return sort(d, c, dvt::data<void>(c->out[0]), nullptr);
}
template <dvt_status (*sort)(dvt_device*, const dvt_call*, void*, void*)>
dvt_status run_argsort(dvt_device* d, const dvt_call* c) {
  return sort(d, c, nullptr, dvt::data<void>(c->out[0]));
}
}  // namespace gpu
