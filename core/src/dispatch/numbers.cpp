#include "dispatch/numbers.hpp"

#include <cmath>

#include "dispatch/execute.hpp"
#include "text.hpp"

namespace dovetail {
Tensor number_of(const Integer& number, DType dtype, const char* function) {
  const int width = 8 * info(dtype).bytes();
  const bool is_signed = info(dtype).kind == DKind::signed_int;
  const uint64_t most = ~uint64_t{0} >> (64 - width + is_signed), least = is_signed ? most + 1 : 0;
  const uint64_t magnitude = number.negative ? ~number.bits + 1 : number.bits;
  const bool fits = !number.wider && magnitude <= (number.negative ? least : most);
  if (!fits) {
    const std::string text =
        !number.text.empty() ? number.text : (number.negative ? "-" : "") + std::to_string(magnitude);
    throw Error(ErrorKind::overflow, std::string("[") + function + "] " + text + " does not fit in " +
                                         info(dtype).name + ": expected " + (least ? "-" : "") +
                                         std::to_string(least) + " to " + std::to_string(most) +
                                         ", or a wider dtype");
  }
  return host_scalar(dtype, &number.bits);  // little-endian: the low bytes come first
}

Tensor number_of(double value, DType dtype, const char* function, const std::string& text) {
  if (dtype == DType::f8e4m3fn && std::fabs(value) > 464)  // it would be NaN, and no comparison true
    throw Error(ErrorKind::overflow, std::string("[") + function + "] " + (text.empty() ? to_string(value) : text) +
                                         " does not fit in float8_e4m3fn, which has no infinity: expected -448 to "
                                         "448, or a wider dtype");
  if (dtype == DType::f32) {
    const float narrow = float(value);
    return host_scalar(dtype, &narrow);
  }
  const Tensor wide = host_scalar(DType::f64, &value);
  return dtype == DType::f64 ? wide : cast_scalar(wide, dtype);
}

Tensor complex_number_of(double real, double imaginary, DType dtype) {
  const double parts[2] = {real, imaginary};
  const Tensor wide = host_scalar(DType::c128, parts);
  return dtype == DType::c128 ? wide : cast_scalar(wide, dtype);
}

Tensor bool_number_of(bool value) {
  const uint8_t byte = value;
  return host_scalar(DType::b8, &byte);
}

bool joins_any_device(const Tensor& t) { return t.rank() == 0 && t.device && t.device->props.kind == DVT_KIND_CPU; }

Tensor as_host_scalar(const Tensor& array) {
  host_access(*array.storage, false);
  return host_scalar(array.dtype, array.view.data);
}

const Op* op_for_bools(const Op& o) {
  static const Op &add = op("add"), &multiply = op("multiply"), &either = op("bitwise_or"),
                  &both = op("bitwise_and");
  return &o == &add ? &either : &o == &multiply ? &both : nullptr;
}
}  // namespace dovetail
