#include "types/scalar.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "dovetail/float16.hpp"
#include "dovetail/floats.hpp"
#include "error.hpp"

namespace dovetail {
namespace {
template <class T>
T read(const Scalar& t) {
  T value;
  std::memcpy(&value, t.bits, sizeof value);
  return value;
}

// The value of a host scalar as a long double, which holds every integer and real dtype exactly.
long double real_value(const Scalar& t) {
  switch (t.dtype) {
    case DType::b8: return read<uint8_t>(t) != 0;
    case DType::i8: return read<int8_t>(t);
    case DType::i16: return read<int16_t>(t);
    case DType::i32: return read<int32_t>(t);
    case DType::i64: return read<int64_t>(t);
    case DType::u8: return read<uint8_t>(t);
    case DType::u16: return read<uint16_t>(t);
    case DType::u32: return read<uint32_t>(t);
    case DType::u64: return read<uint64_t>(t);
    case DType::f8e4m3fn: return std::bit_cast<float>(dvt::float32_of<3>(read<uint8_t>(t)));
    case DType::f8e5m2: return std::bit_cast<float>(dvt::float32_of<2>(read<uint8_t>(t)));
    case DType::f8e4m3fnuz: return std::bit_cast<float>(dvt::float32_of_fnuz<3>(read<uint8_t>(t)));
    case DType::f8e5m2fnuz: return std::bit_cast<float>(dvt::float32_of_fnuz<2>(read<uint8_t>(t)));
    case DType::f8e8m0fnu: return std::bit_cast<float>(dvt::float32_of_e8m0(read<uint8_t>(t)));
    case DType::f4e2m1fn: return std::bit_cast<float>(dvt::float32_of_e2m1(read<uint8_t>(t)));
    case DType::i4: return int8_t(read<uint8_t>(t) << 4) >> 4;
    case DType::i2: return int8_t(read<uint8_t>(t) << 6) >> 6;
    case DType::u4: return read<uint8_t>(t) & 15;
    case DType::u2: return read<uint8_t>(t) & 3;
    case DType::f16: return float(read<dvt::float16>(t));
    case DType::bf16: return std::bit_cast<float>(dvt::float32_of_bf16(read<uint16_t>(t)));
    case DType::f32:
    case DType::c64: return read<float>(t);
    case DType::f64:
    case DType::c128: return read<double>(t);
    default: throw Error(ErrorKind::type, "a scalar without a dtype");
  }
}

// Integers out of range wrap, as they do on a device.
template <class T>
T wrap(long double v) {
  if (!std::isfinite(v)) return 0;
  const long double two64 = 18446744073709551616.0L;
  const long double whole = std::fmod(std::trunc(v), two64);
  return T(whole < 0 ? ~uint64_t(-whole) + 1 : uint64_t(whole));
}

void write_real(void* to, DType dtype, long double v) {
  auto put = [&](auto value) { std::memcpy(to, &value, sizeof value); };
  switch (dtype) {
    case DType::b8: return put(uint8_t(v != 0));
    case DType::i8: return put(wrap<int8_t>(v));
    case DType::i16: return put(wrap<int16_t>(v));
    case DType::i32: return put(wrap<int32_t>(v));
    case DType::i64: return put(wrap<int64_t>(v));
    case DType::u8: return put(wrap<uint8_t>(v));
    case DType::u16: return put(wrap<uint16_t>(v));
    case DType::u32: return put(wrap<uint32_t>(v));
    case DType::u64: return put(wrap<uint64_t>(v));
    case DType::f8e4m3fn: return put(dvt::float8_of<3>(dvt::odd_float32_of(v)));
    case DType::f8e5m2: return put(dvt::float8_of<2>(dvt::odd_float32_of(v)));
    case DType::f8e4m3fnuz: return put(dvt::fnuz_of<3>(dvt::odd_float32_of(v)));
    case DType::f8e5m2fnuz: return put(dvt::fnuz_of<2>(dvt::odd_float32_of(v)));
    case DType::f8e8m0fnu: return put(dvt::e8m0_of(dvt::odd_float32_of(v)));
    case DType::f4e2m1fn: return put(dvt::e2m1_of(dvt::odd_float32_of(v)));
    case DType::i4:
    case DType::u4: return put(uint8_t(wrap<uint8_t>(v) & 15));
    case DType::i2:
    case DType::u2: return put(uint8_t(wrap<uint8_t>(v) & 3));
    case DType::f16: return put(dvt::f16_of(dvt::odd_float32_of(v)));
    case DType::bf16: return put(dvt::bf16_of(dvt::odd_float32_of(v)));
    case DType::f32:
    case DType::c64: return put(float(v));
    case DType::f64:
    case DType::c128: return put(double(v));
    default: throw Error(ErrorKind::type, "a scalar without a dtype");
  }
}
}  // namespace

Scalar cast_scalar(const Scalar& t, DType dtype) {
  Scalar out;
  out.dtype = dtype;
  write_real(out.bits, dtype, real_value(t));
  if (is_complex(t.dtype)) {
    const uint64_t half = info(t.dtype).bytes() / 2;
    const Scalar imaginary(half == 4 ? DType::f32 : DType::f64, t.bits + half);
    if (is_complex(dtype)) write_real(out.bits + info(dtype).bytes() / 2, dtype, real_value(imaginary));
    else if (dtype == DType::b8) out.bits[0] |= std::byte{real_value(imaginary) != 0};
  }
  return out;
}

TensorType type_of(const Scalar& s) {
  TensorType t;
  t.dtype = s.dtype;
  t.set_shape({});
  return t;
}
}  // namespace dovetail
