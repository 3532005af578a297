// Values on the move: casts, compact copies, host scalars, other devices.
#include <algorithm>
#include <cmath>

#include "device/capturing.hpp"
#include "dispatch/execute.hpp"
#include "dovetail/backend.hpp"
#include "dovetail/floats.hpp"

namespace dovetail {
namespace {
const Op& named(const char* name) { return op(name); }
}  // namespace

Scalar scalar_of(const Tensor& t) { return {t.dtype, t.view.data}; }

Tensor host_scalar(const Scalar& s) { return host_scalar(s.dtype, s.bits); }

Tensor cast_scalar(const Tensor& t, DType dtype) { return host_scalar(cast_scalar(scalar_of(t), dtype)); }

static void set_host_scalar(Tensor& t, DType dtype, const void* bits) {
  t.set_rank(0);
  t.numel = 1, t.dense = true;
  t.set_type(dtype, nullptr);
  t.view.data = &t.dims[DVT_MAX_NDIM];  // the strides' place, which a 0-d tensor does not need
  std::memcpy(t.view.data, bits, info(dtype).bytes());
}

void set_host_scalar(Tensor& t, const Scalar& s) { set_host_scalar(t, s.dtype, s.bits); }

Tensor host_scalar(DType dtype, const void* bits) {
  Tensor t;
  set_host_scalar(t, dtype, bits);
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
  bool is_new = true;
  Capturing* const c = capturing_on(device);
  Storage* const number = c ? c->number(stream, t.bytes(), is_new) : nullptr;  // each replay has the same numbers
  t.own(number ? number : allocate(device, device.index, stream, t.bytes()));
  if (is_new) copy_bytes(device, stream, t.view, scalar.view);
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
  Invocation inv(copy, to.device, in, 1, attrs);
  inv.out[0] = &shape_only;
  inv.infer();
  if (inv.plan->mode != Plan::kernel)
    inv.fail(ErrorKind::not_implemented,
             "no kernel for " + std::string(info(from.dtype).name) + " on " + to.device->name);
  inv.out[0] = &to;
  run_into(inv);
}

namespace {
bool copies_itself(const Tensor& t) {
  static const Op& copy = named("copy");
  const Tensor* in[] = {&t};
  Attrs attrs;
  Tensor shape_only;
  Invocation inv(copy, t.device, in, 1, attrs);
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
