#include "dispatch/numbers.hpp"

#include <cmath>
#include <cstring>

#include "dispatch/execute.hpp"
#include "text.hpp"

namespace dovetail {
Tensor number_of(const Integer& number, DType dtype, const char* function) {
  const int width = int(info(dtype).bits());
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

// Of the floats of which too large numbers would be NaN, and no comparison true.
static const char* numbers_without_infinity(DType t) {
  switch (t) {
    case DType::f8e4m3fn: return "-448 to 448";
    case DType::f8e4m3fnuz: return "-240 to 240";
    case DType::f8e5m2fnuz: return "-57344 to 57344";
    case DType::f8e8m0fnu: return "2**-127 to 2**127";
    default: return nullptr;
  }
}

Tensor number_of(double value, DType dtype, const char* function, const std::string& text) {
  if (dtype == DType::f32) {
    const float narrow = float(value);
    return host_scalar(dtype, &narrow);
  }
  const Tensor wide = host_scalar(DType::f64, &value);
  if (dtype == DType::f64) return wide;
  const Tensor number = cast_scalar(wide, dtype);
  if (const char* const expected = std::isnan(value) ? nullptr : numbers_without_infinity(dtype)) {
    float back;
    std::memcpy(&back, cast_scalar(number, DType::f32).view.data, sizeof back);
    if (std::isnan(back))
      throw Error(ErrorKind::overflow, std::string("[") + function + "] " +
                                           (text.empty() ? to_string(value) : text) + " does not fit in " +
                                           info(dtype).name + ", which has no infinity: expected " + expected +
                                           ", or a wider dtype");
  }
  return number;
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
