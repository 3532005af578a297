// Values on the move: casts, compact copies, host scalars, other devices.
#include <algorithm>
#include <cmath>

#include "dispatch/execute.hpp"
#include "dovetail/backend.hpp"
#include "dovetail/floats.hpp"

namespace dovetail {
namespace {
const Op& named(const char* name) { return op(name); }

template <class T>
T read(const Tensor& t) {
  T value;
  std::memcpy(&value, t.view.data, sizeof value);
  return value;
}

// The value of a host scalar as a long double, which holds every integer and real dtype exactly.
long double real_value(const Tensor& t) {
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

Tensor cast_scalar(const Tensor& t, DType dtype) {
  alignas(16) std::byte bits[16] = {};
  write_real(bits, dtype, real_value(t));
  if (is_complex(t.dtype)) {
    const int half = info(t.dtype).bytes / 2;
    Tensor imaginary =
        host_scalar(half == 4 ? DType::f32 : DType::f64, static_cast<std::byte*>(t.view.data) + half);
    if (is_complex(dtype)) write_real(bits + info(dtype).bytes / 2, dtype, real_value(imaginary));
    else if (dtype == DType::b8) bits[0] |= std::byte{real_value(imaginary) != 0};
  }
  return host_scalar(dtype, bits);
}

Tensor host_scalar(DType dtype, const void* bits) {
  Tensor t;
  t.set_type(dtype, nullptr);
  t.set_dense();
  t.view.data = &t.dims[DVT_MAX_NDIM];  // the strides' place, which a 0-d tensor does not need
  std::memcpy(t.view.data, bits, info(dtype).bytes);
  return t;
}

Tensor cast(const Tensor& t, DType dtype, Device& device) {
  if (!t.device) return cast_scalar(t, dtype);
  static const Op& astype = named("astype");
  Attrs attrs;
  attrs.at[0] = {DVT_A_DTYPE, 1, {.dt = info(dtype).dl}};
  const Tensor* in[] = {&t};
  Tensor out;
  call(astype, &device, in, 1, attrs, &out);
  return out;
}

Tensor materialise(const Tensor& scalar, Device& device) {
  Tensor t;
  t.set_type(scalar.dtype, &device);
  t.set_dense();
  Stream& stream = current_stream(device);
  t.own(allocate(device, device.index, stream, t.bytes()));
  copy_bytes(device, stream, t.view, scalar.view);
  return t;
}

Tensor compact(const Tensor& t) {
  static const Op& copy = named("copy");
  const Tensor* in[] = {&t};
  Attrs attrs;
  Tensor out;
  call(copy, t.device, in, 1, attrs, &out);
  return out;
}

Tensor broadcast_view(const Tensor& t, std::span<const int64_t> shape) {
  Tensor out = t;
  const int rank = int(shape.size()), lead = rank - t.rank();
  out.set_rank(rank);
  for (int i = 0; i < rank; ++i) {
    out.size(i) = shape[i];
    out.stride(i) = i < lead || (t.size(i - lead) == 1 && shape[i] != 1) ? 0 : t.stride(i - lead);
  }
  out.update_dense();
  return out;
}

void copy_into(Tensor& to, const Tensor& from) {
  static const Op& copy = named("copy");
  if (to.numel == 0) return;
  const Tensor* in[] = {&from};
  Attrs attrs;
  Tensor shape_only;
  Invocation inv{.op = copy, .device = to.device, .in = in, .n_in = 1, .attrs = attrs};
  inv.out[0] = &shape_only;
  inv.infer();
  if (inv.plan->mode != Plan::kernel)
    inv.fail(ErrorKind::not_implemented,
             "no kernel for " + std::string(info(from.dtype).name) + " on " + to.device->name);
  inv.out[0] = &to;
  run_kernel(inv, true);
}

namespace {
bool copies_itself(const Tensor& t) {
  static const Op& copy = named("copy");
  const Tensor* in[] = {&t};
  Attrs attrs;
  Tensor shape_only;
  Invocation inv{.op = copy, .device = t.device, .in = in, .n_in = 1, .attrs = attrs};
  inv.out[0] = &shape_only;
  inv.infer();
  return inv.plan->mode == Plan::kernel;
}

// All that lies between the first and the last element goes over, the gaps too: no kernel of t's device is needed,
// so that a device which lacks one for copies can be stood in for.
Tensor move_with_gaps(const Tensor& t, Device& device) {
  int64_t extent = 1;
  for (int i = 0; i < t.rank(); ++i) extent += (t.size(i) - 1) * t.stride(i);
  Tensor span = t;
  span.set_shape({&extent, 1});
  span = to_device(span, device);
  Tensor out = t;
  out.set_type(t.dtype, &device);
  release(out.storage);
  retain(span.storage);
  out.own(span.storage);
  return compact(out);
}

// May one of them copy from the other's memory itself?
bool are_peers(const Device& a, const Device& b) {
  return a.backend == b.backend && a.props.caps & b.props.caps & DVT_CAP_P2P;
}
}  // namespace

Tensor to_device(const Tensor& t, Device& device) {
  if (!t.device) return materialise(t, device);
  if (t.device == &device) return t;
  if (!t.dense) return copies_itself(t) ? to_device(compact(t), device) : move_with_gaps(t, device);
  Tensor out;
  out.set_type(t.dtype, &device);
  out.set_shape(t.shape());
  Stream& stream = current_stream(device);
  out.own(allocate(device, device.index, stream, out.bytes()));
  if (t.numel == 0) return out;
  DLTensor host = t.view;
  host.device = dl_device(1 /* kDLCPU */, 0);
  if (t.device->host_mapped) {
    host_access(*t.storage, false);
    copy_bytes(device, stream, out.view, host);
  } else if (device.host_mapped) {
    host_access(*out.storage, true);  // it may have been used before
    host = out.view;
    host.device = dl_device(1 /* kDLCPU */, 0);
    use(*t.storage, current_stream(*t.device), false);
    copy_bytes(*t.device, current_stream(*t.device), host, t.view);
  } else if (are_peers(*t.device, device)) {
    t.device->check_usable();
    use(*t.storage, stream, false);
    copy_bytes(device, stream, out.view, t.view);
  } else {  // through memory of the host
    std::vector<std::byte> bounce(t.bytes());
    host.data = bounce.data();
    use(*t.storage, current_stream(*t.device), false);
    copy_bytes(*t.device, current_stream(*t.device), host, t.view);
    copy_bytes(device, stream, out.view, host);
  }
  return out;
}
}  // namespace dovetail
