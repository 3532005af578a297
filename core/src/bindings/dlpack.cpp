// DLPack in both directions. Exported memory stays shared until its consumer deletes it, and is marked read-only,
// because a value never changes. Imported memory stays the producer's; the runtime never writes to it.
#include "bindings/dlpack.hpp"

#include <pybind11/stl.h>

#include <memory>

#include "bindings/interchange.hpp"
#include "device/packs.hpp"
#include "dispatch/execute.hpp"

namespace dovetail::bindings {
namespace {
using dlpack::Managed;
using dlpack::ManagedVersioned;
constexpr int kCudaHost = 3, kRocmHost = 11, kExtension = 12;  // DLPack's device types
bool on_host(DLDevice d) {
  return d.device_type == kHostMemory || d.device_type == kCudaHost || d.device_type == kRocmHost;
}
DLDevice outside_name(const Device& d) { return {d.props.dl_device_type, d.props.dl_device_id}; }
std::string to_string(DLDevice d) {
  return "(" + std::to_string(d.device_type) + ", " + std::to_string(d.device_id) + ")";
}
[[noreturn]] void refuse(const std::string& why) { throw py::buffer_error("[dlpack] " + why); }
constexpr const char* kOddBools =
    "bools whose bytes are not 0 or 1 take a copy: expected copy=None or True, or x.view(\"uint8\") != 0 at the "
    "producer";

// ---- out --------------------------------------------------------------------------------------------------------
struct Exported {
  Tensor held;                    // either a share of the array's buffer
  std::unique_ptr<char[]> bytes;  // or a copy on the host
  Managed managed;
  ManagedVersioned versioned;
};

template <class M>
void delete_exported(M* m) {
  delete static_cast<Exported*>(m->context);
}  // needs no GIL

template <class M>
py::object capsule_of(M& managed, const char* name) {
  PyObject* capsule = PyCapsule_New(&managed, name, [](PyObject* o) {
    const char* now = PyCapsule_GetName(o);  // "used_..." once a consumer has taken it
    if (!now || std::strncmp(now, "dltensor", 8) != 0) return;
    auto* m = static_cast<M*>(PyCapsule_GetPointer(o, now));
    if (m->deleter) m->deleter(m);
  });
  if (!capsule) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(capsule);
}

py::object to_capsule(std::unique_ptr<Exported> e, DLDevice device, uint64_t flags, bool versioned) {
  DLTensor view = e->held.view;
  if (e->bytes) view.data = e->bytes.get();
  view.device = device;
  e->managed = {view, e.get(), delete_exported<Managed>};
  e->versioned = {{dlpack::kMajor, dlpack::kMinor}, e.get(), delete_exported<ManagedVersioned>, flags, view};
  py::object capsule =
      versioned ? capsule_of(e->versioned, "dltensor_versioned") : capsule_of(e->managed, "dltensor");
  e.release();
  return capsule;
}

void check_stream(const Tensor& t, const py::object& stream) {
  if (stream.is_none()) return;
  if (!PyLong_Check(stream.ptr()) || PyBool_Check(stream.ptr()))
    throw Error(ErrorKind::type, "[dlpack] stream: expected an integer or None, got " + shown(stream.ptr()));
  if (t.device->props.dl_device_type == kHostMemory && stream.cast<long long>() != -1)
    throw Error(ErrorKind::value,
                "[dlpack] stream: expected None, as " + t.device->name + " has no streams for others");
}

py::object export_array(const Tensor& array, const py::object& stream,
                        std::optional<std::pair<uint32_t, uint32_t>> max_version,
                        std::optional<std::pair<int32_t, int32_t>> dl_device, std::optional<bool> copy) {
  check_stream(array, stream);
  const bool versioned = max_version && max_version->first >= dlpack::kMajor;
  const DLDevice own = outside_name(*array.device);
  const DLDevice wanted = dl_device ? DLDevice{dl_device->first, dl_device->second} : own;
  const bool here = wanted.device_type == own.device_type && wanted.device_id == own.device_id;
  const bool to_host = wanted.device_type == kHostMemory;
  if (!here && !to_host)
    refuse("the array is on " + to_string(own) + ": expected that or the host, (1, 0), got " + to_string(wanted));
  const bool can_share = here || array.device->host_mapped;
  if (copy == false && !can_share)
    refuse("bringing the array to the host takes a copy: expected copy=None or True");
  // A capsule before DLPack 1.0 cannot mark the memory read-only: it shares only where the caller insists.
  auto e = std::make_unique<Exported>();
  if (can_share && !copy.value_or(!versioned)) {
    e->held = array;
    never_pack(*e->held.storage);  // some consumers ignore the flag and write
    if (stream.is_none() || stream.cast<long long>() != -1) host_access(*e->held.storage, false);
    return to_capsule(std::move(e), wanted, dlpack::kReadOnly, versioned);
  }
  const Tensor source = array;
  e->held.set_type(source.dtype, source.device);
  e->held.set_shape(source.shape());
  if (to_host) {
    e->bytes = std::make_unique_for_overwrite<char[]>(source.bytes() + 1);
    download(source, e->bytes.get());
  } else {
    e->held = compact(source);
    host_access(*e->held.storage, false);
  }
  return to_capsule(std::move(e), wanted, dlpack::kIsCopied, versioned);
}

// ---- in ---------------------------------------------------------------------------------------------------------
// The content of a capsule of either kind.
struct Imported {
  PyObject* capsule;
  const char* name;
  void* managed = nullptr;
  DLTensor* tensor = nullptr;

  explicit Imported(PyObject* o) : capsule(o), name(PyCapsule_CheckExact(o) ? PyCapsule_GetName(o) : nullptr) {
    if (!name)
      throw Error(ErrorKind::type,
                  "[from_dlpack] expected a DLPack capsule, got " + std::string(Py_TYPE(o)->tp_name));
    if (std::strncmp(name, "used_", 5) == 0)
      throw Error(ErrorKind::value, "[from_dlpack] the capsule was consumed already");
    managed = PyCapsule_GetPointer(o, name);
    if (!managed) throw py::error_already_set();
    if (is("dltensor")) {
      tensor = &static_cast<Managed*>(managed)->tensor;
    } else if (is("dltensor_versioned")) {
      const dlpack::Version v = static_cast<ManagedVersioned*>(managed)->version;
      if (v.major != dlpack::kMajor)
        refuse("the tensor is of DLPack " + std::to_string(v.major) + "." + std::to_string(v.minor) +
               ": expected 1.x");
      tensor = &static_cast<ManagedVersioned*>(managed)->tensor;
    } else {
      throw Error(ErrorKind::type,
                  "[from_dlpack] expected a DLPack capsule, got one named '" + std::string(name) + "'");
    }
  }
  bool is(const char* wanted) const { return std::strcmp(name, wanted) == 0; }

  // From here on the runtime owns the tensor and must delete it.
  template <class M>
  static void delete_managed(Storage* s) {
    auto* m = static_cast<M*>(s->owner);
    if (m->deleter) m->deleter(m);
  }
  Storage* take(Device& device, void* data) {
    const bool legacy = is("dltensor");
    if (PyCapsule_SetName(capsule, legacy ? "used_dltensor" : "used_dltensor_versioned") < 0)
      throw py::error_already_set();
    return adopt(device, current_stream(device), data,
                 legacy ? delete_managed<Managed> : delete_managed<ManagedVersioned>, managed);
  }
};

// Checks the tensor's layout and reads it into `t`, without data and storage. Returns false where no Tensor can
// have its strides.
bool read_layout(const DLTensor& from, Tensor& t) {
  if (from.ndim < 0 || from.ndim > DVT_MAX_NDIM)
    refuse("a tensor of " + std::to_string(from.ndim) + " axes: expected at most " + std::to_string(DVT_MAX_NDIM));
  const std::optional<DType> dtype = dtype_of(from.dtype);
  if (!dtype)
    refuse("a tensor of dtype (code " + std::to_string(from.dtype.code) + ", " + std::to_string(from.dtype.bits) +
           " bits, " + std::to_string(from.dtype.lanes) + " lanes): expected one of dovetail's dtypes");
  t.set_type(*dtype, nullptr);
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
  const auto address = reinterpret_cast<uintptr_t>(from.data) + from.byte_offset;
  const int item = info(*dtype).bytes();
  return fits && address % uintptr_t(is_complex(*dtype) ? item / 2 : item) == 0;
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

// Brings the capsule's tensor to `target`. `home` is the device that owns its memory; None: plain memory of the
// host.
Tensor import_capsule(const py::object& capsule, const py::object& home, const py::object& target,
                      std::optional<bool> copy) {
  Imported in(capsule.ptr());
  const DLTensor& from = *in.tensor;
  Tensor t;
  const bool fits = read_layout(from, t);
  char* data = static_cast<char*>(from.data) + from.byte_offset;
  Device& to = to_device(target.ptr());
  Device* at = home.is_none() ? nullptr : &to_device(home.ptr());
  if (at && !on_host(from.device) &&
      (from.device.device_type == kExtension || from.device.device_type != at->props.dl_device_type ||
       from.device.device_id != at->props.dl_device_id))
    refuse("the tensor is on " + to_string(from.device) + ", which " + at->name + " cannot read");
  if (!at && !on_host(from.device))
    refuse("the tensor is on " + to_string(from.device) + ": expected memory of the host");
  const bool takes_bools = t.dtype == DType::b8 && on_host(from.device) && fits && !are_plain_bools_at(t, data);
  if (at == &to && fits && !takes_bools && !copy.value_or(false) && t.numel) {
    t.set_type(t.dtype, at);
    t.own(in.take(*at, data));
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
  t.own(in.take(*at, data));
  t = compact(t);  // the caller moves it on
  return t.dtype == DType::b8 ? with_plain_bools(std::move(t), copy) : t;
}

// The device that other libraries know under this DLPack name.
py::object home_of(int32_t type, int32_t id, const py::object& preferred) {
  const auto is = [&](const Device& d) {
    return d.props.dl_device_type == type && (type == kHostMemory || d.props.dl_device_id == id) &&
           type != kExtension;
  };
  Device& first = to_device(preferred.ptr());
  if (is(first)) return py::reinterpret_borrow<py::object>(device_object(first));
  for (Device* d : devices())
    if (is(*d)) return py::reinterpret_borrow<py::object>(device_object(*d));
  return py::none();
}

// The current stream as the device's own library names it, for the producer's __dlpack__(stream=).
py::object native_stream(const py::object& device) {
  Device& d = to_device(device.ptr());
  const dvt_streams* streams =
      DVT_HAS(d.backend->table, dvt_backend, streams) ? d.backend->table->streams : nullptr;
  if (d.props.dl_device_type == kHostMemory || !streams || !DVT_HAS(streams, dvt_streams, native))
    return py::none();
  const auto handle = reinterpret_cast<uintptr_t>(streams->native(current_stream(d).handle));
  return py::int_(handle ? handle : 1);  // 0 is ambiguous by the protocol; 1 is the default stream
}
}  // namespace

void make_dlpack(py::module_& m) {
  const py::handle type(reinterpret_cast<PyObject*>(array_type));
  py::setattr(
      type, "__dlpack__",
      py::cpp_function(
          export_array, py::name("__dlpack__"), py::is_method(type), py::kw_only(), py::arg("stream") = py::none(),
          py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(), py::arg("copy") = py::none(),
          "A DLPack capsule for another library. It shares the elements, marked read-only, until that "
          "library deletes it; a consumer that does not know DLPack 1.0 gets a copy, unless copy=False."));
  py::setattr(type, "__dlpack_device__",
              py::cpp_function(
                  [](const Tensor& x) {
                    const DLDevice d = outside_name(*x.device);
                    return std::make_pair(d.device_type, d.device_id);
                  },
                  py::name("__dlpack_device__"), py::is_method(type),
                  "(device type, device number), as DLPack numbers them."));
  m.def("import_dlpack", import_capsule);
  m.def("dlpack_home", home_of);
  m.def("native_stream", native_stream);
}
}  // namespace dovetail::bindings
