#include "dispatch/checks.hpp"

#include "dispatch/execute.hpp"

namespace dovetail {
namespace {
// The value of an integer array without axes. Waits for the device.
int64_t value_of(const Tensor& t) {
  int64_t zero = 0;
  Tensor host = cast_scalar(host_scalar(DType::i64, &zero), t.dtype);
  if (t.device->host_mapped) {
    host_access(*t.storage, false);
    std::memcpy(host.view.data, t.view.data, info(t.dtype).bytes());
  } else {
    Stream& stream = current_stream(*t.device);
    use(*t.storage, stream, false);
    copy_bytes(*t.device, stream, host.view, t.view);
  }
  const Tensor wide = cast_scalar(host, DType::i64);
  return *static_cast<const int64_t*>(wide.view.data);
}

bool has_negative(const Tensor& t, Device& device) {
  if (!t.device) {
    const Tensor wide = cast_scalar(t, DType::i64);
    return *static_cast<const int64_t*>(wide.view.data) < 0;
  }
  if (t.numel == 0) return false;
  static const Op& min = op("min");
  Attrs attrs = min.defaults;
  const Tensor* in[] = {&t};
  Tensor least;
  call(min, &device, in, 1, attrs, &least);
  return value_of(least) < 0;
}
}  // namespace

// 2 ** -1 is no integer: devices would return different numbers.
void check_exponent(const Invocation& inv) {
  if (!is_integer(inv.plan->result[0])) return;
  const Tensor& exponent = inv.operand(1);
  if (info(exponent.dtype).kind == DKind::signed_int && has_negative(exponent, *inv.device))
    inv.fail(ErrorKind::value,
             "integers to negative integer powers are not allowed: got a negative exponent, expected 0 or more; "
             "astype one operand to a float");
}
}  // namespace dovetail
