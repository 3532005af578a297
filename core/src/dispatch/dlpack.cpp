// Exported memory stays shared until its consumer deletes it. Imported memory stays the producer's.
#include "dispatch/dlpack.hpp"

#include <string>
#include <vector>

#include "device/packs.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/host_memory.hpp"

namespace dovetail::dlpack {
namespace {
bool on_host(DLDevice d) {
  return d.device_type == kHostMemory || d.device_type == kCudaHost || d.device_type == kRocmHost;
}
std::string to_string(DLDevice d) {
  return "(" + std::to_string(d.device_type) + ", " + std::to_string(d.device_id) + ")";
}
[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::buffer, "[dlpack] " + why); }
constexpr const char* kOddBools =
    "bools whose bytes are not 0 or 1 take a copy: expected copy=None or True, or x.view(\"uint8\") != 0 at the "
    "producer";

template <class M>
void delete_exported(M* m) {
  delete static_cast<Exported*>(m->context);
}

std::unique_ptr<Exported> filled(std::unique_ptr<Exported> e, DLDevice device, uint64_t flags) {
  DLTensor view = e->held.view;
  if (e->bytes) view.data = e->bytes.get();
  view.device = device;
  e->managed = {view, e.get(), delete_exported<Managed>};
  e->versioned = {{kMajor, kMinor}, e.get(), delete_exported<ManagedVersioned>, flags, view};
  return e;
}
void wait_for_elements(const Tensor& t, Order order) {
  if (order == Order::none) return;
  if (order == Order::on_stream && native_stream(*t.device)) use(*t.storage, current_stream(*t.device), false);
  else host_access(*t.storage, false);
}
}  // namespace

std::optional<void*> native_stream(Device& d) {
  const dvt_streams* streams =
      DVT_HAS(d.backend->table, dvt_backend, streams) ? d.backend->table->streams : nullptr;
  if (d.props.dl_device_type == kHostMemory || !streams || !DVT_HAS(streams, dvt_streams, native))
    return std::nullopt;
  return streams->native(current_stream(d).handle);
}

DType dtype_named(DLDataType name) {
  const std::optional<DType> dtype = dtype_of(name);
  if (!dtype)
    refuse("a tensor of dtype (code " + std::to_string(name.code) + ", " + std::to_string(name.bits) + " bits, " +
           std::to_string(name.lanes) + " lanes): expected one of dovetail's dtypes");
  return *dtype;
}

std::unique_ptr<Exported> export_new(DType dtype, std::span<const int64_t> shape, Device& device) {
  auto e = std::make_unique<Exported>();
  e->held = empty_tensor(dtype, shape, device);
  never_pack(*e->held.storage);  // the consumer writes
  return filled(std::move(e), dl_device(device.props.dl_device_type, device.props.dl_device_id), 0);
}

std::unique_ptr<Exported> export_array(const Tensor& array, const ExportOptions& options) {
  const DLDevice own = dl_device(array.device->props.dl_device_type, array.device->props.dl_device_id);
  const DLDevice wanted = options.device.value_or(own);
  const bool here = wanted.device_type == own.device_type && wanted.device_id == own.device_id;
  const bool to_host = wanted.device_type == kHostMemory;
  if (!here && !to_host)
    refuse("the array is on " + to_string(own) + ": expected that or the host, (1, 0), got " + to_string(wanted));
  const bool can_share = here || array.device->host_mapped;
  if (options.copy == false && !can_share)
    refuse("bringing the array to the host takes a copy: expected copy=None or True");
  auto e = std::make_unique<Exported>();
  if (can_share && !options.copy.value_or(!options.versioned)) {
    e->held = array;
    never_pack(*e->held.storage);  // the consumer may write
    wait_for_elements(e->held, options.order);
    return filled(std::move(e), wanted, options.shared_flags);
  }
  const Tensor source = array;
  e->held.set_type(source.dtype, source.device);
  e->held.set_shape(source.shape());
  if (to_host) {
    e->bytes = std::make_unique_for_overwrite<char[]>(source.bytes() + 1);
    download(source, e->bytes.get());
  } else {
    e->held = compact(source);
    wait_for_elements(e->held, options.order == Order::none ? Order::on_host : options.order);
  }
  return filled(std::move(e), wanted, kIsCopied);
}

// ---- in ---------------------------------------------------------------------------------------------------------
Foreign::Foreign(ManagedVersioned* m)
    : managed(m), tensor(&m->tensor), versioned(true), padded(m->flags & kIsPadded) {
  if (m->version.major != kMajor)
    refuse("the tensor is of DLPack " + std::to_string(m->version.major) + "." + std::to_string(m->version.minor) +
           ": expected 1.x");
}

namespace {
template <class M>
void delete_managed(Storage* s) {
  auto* m = static_cast<M*>(s->owner);
  if (m->deleter) m->deleter(m);
}
Storage* take(Foreign& from, Device& device, void* data) {
  Storage* s = adopt(device, current_stream(device), data,
                     from.versioned ? delete_managed<ManagedVersioned> : delete_managed<Managed>, from.managed);
  from.taken = true;
  return s;
}

// Checks the tensor's layout and reads it into `t`, without data and storage. Returns false where no Tensor can
// have its strides.
bool read_layout(const DLTensor& from, Tensor& t) {
  if (from.ndim < 0 || from.ndim > DVT_MAX_NDIM)
    refuse("a tensor of " + std::to_string(from.ndim) + " axes: expected at most " + std::to_string(DVT_MAX_NDIM));
  const DType dtype = dtype_named(from.dtype);
  t.set_type(dtype, nullptr);
  if (from.ndim && !from.shape) refuse("a tensor of " + std::to_string(from.ndim) + " axes without a shape");
  t.set_shape({from.shape, size_t(from.ndim)});
  if (t.numel && !from.data) refuse("a tensor of " + std::to_string(t.numel) + " elements without memory");
  bool fits = true;
  if (from.strides && t.numel) {
    for (int i = 0; i < from.ndim; ++i) {
      t.stride(i) = from.strides[i];
      fits &= from.strides[i] >= 0;
    }
    t.update_dense();
  }
  if (is_packed(dtype) && !t.dense)
    refuse(std::string("a tensor of ") + info(dtype).name + " with strides: expected compact bytes");
  const auto address = reinterpret_cast<uintptr_t>(from.data) + from.byte_offset;
  const int item = info(dtype).bytes();
  return fits && address % uintptr_t(is_complex(dtype) ? item / 2 : item) == 0;
}

void gather(const Tensor& t, int axis, const char* from, char*& to) {  // elements of any strides, row by row
  const int64_t item = info(t.dtype).bytes();
  if (axis == t.rank()) {
    std::memcpy(to, from, size_t(item));
    to += item;
    return;
  }
  for (int64_t i = 0; i < t.size(axis); ++i) gather(t, axis + 1, from + i * t.stride(axis) * item, to);
}

// Whether all bools of memory that `t` names are 0 or 1.
bool are_plain_bools_at(const Tensor& t, const char* data) {
  if (t.dense) return are_plain_bools({reinterpret_cast<const uint8_t*>(data), t.numel});
  std::vector<char> bytes(t.numel);
  char* next = bytes.data();
  gather(t, 0, data, next);
  return are_plain_bools({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

// The same of memory that only the device can read; where they are not, a copy with those values.
Tensor with_plain_bools(Tensor t, std::optional<bool> copy) {
  static const Op &max = op("max"), &not_equal = op("not_equal");
  Tensor bytes = t, largest, plain;
  bytes.set_type(DType::u8, t.device);
  const Tensor* in[] = {&bytes, nullptr};
  Attrs attrs = max.defaults;
  dovetail::call(max, t.device, in, 1, attrs, &largest);
  uint8_t found = 0;
  download(largest, &found);
  if (found <= 1) return t;
  if (copy == false) refuse(kOddBools);
  const uint8_t zero = 0;
  const Tensor none = host_scalar(DType::u8, &zero);
  in[1] = &none;
  Attrs no_attrs;
  dovetail::call(not_equal, t.device, in, 2, no_attrs, &plain);
  return plain;
}

}  // namespace

Tensor import_array(Foreign& in, Device* at, Device& to, std::optional<bool> copy) {
  const DLTensor& from = *in.tensor;
  Tensor t;
  const bool fits = read_layout(from, t);
  if (is_packed(t.dtype) && in.padded)
    refuse(std::string("a tensor of ") + info(t.dtype).name +
           " with a byte for each element: expected packed ones");
  char* data = static_cast<char*>(from.data) + from.byte_offset;
  if (at && !on_host(from.device) &&
      (from.device.device_type == kExtension || from.device.device_type != at->props.dl_device_type ||
       from.device.device_id != at->props.dl_device_id))
    refuse("the tensor is on " + to_string(from.device) + ", which " + at->name + " cannot read");
  if (!at && !on_host(from.device))
    refuse("the tensor is on " + to_string(from.device) + ": expected memory of the host");
  const bool takes_bools = t.dtype == DType::b8 && on_host(from.device) && fits && !are_plain_bools_at(t, data);
  if (at == &to && fits && !takes_bools && !copy.value_or(false) && t.numel) {
    t.set_type(t.dtype, at);
    t.own(take(in, *at, data));
    return t.dtype == DType::b8 && !on_host(from.device) ? with_plain_bools(std::move(t), copy) : t;
  }
  if (copy == false && t.numel)
    refuse(takes_bools ? kOddBools
           : fits      ? "the tensor is not in memory of " + to.name + ": expected copy=None or True"
                       : "negative strides or unaligned elements take a copy: expected copy=None or True");
  const std::vector<int64_t> shape(t.shape().begin(), t.shape().end());
  if (on_host(from.device)) {
    if (t.dense) return upload(data, t.dtype, shape, to);
    std::vector<char> bytes(t.bytes());
    char* next = bytes.data();
    gather(t, 0, data, next);
    return upload(bytes.data(), t.dtype, shape, to);
  }
  if (!fits) refuse("negative strides on " + at->name + ": expected strides of at least 0");
  t.set_type(t.dtype, at);
  t.own(take(in, *at, data));
  t = compact(t);  // the caller moves it on
  return t.dtype == DType::b8 ? with_plain_bools(std::move(t), copy) : t;
}

Device* home_of(DLDevice name, Device& first) {
  const auto is = [&](const Device& d) {
    return d.props.dl_device_type == name.device_type &&
           (name.device_type == kHostMemory || d.props.dl_device_id == name.device_id) &&
           name.device_type != kExtension;
  };
  if (is(first)) return &first;
  for (Device* d : devices())
    if (is(*d)) return d;
  return nullptr;
}
}  // namespace dovetail::dlpack
