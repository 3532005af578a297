// DLPack capsules. Exported memory is marked read-only, because a value never changes; the runtime never writes to
// imported memory.
#include "dispatch/dlpack.hpp"

#include <pybind11/stl.h>

#include "bindings/interchange.hpp"
#include "dispatch/execute.hpp"

namespace dovetail::bindings {
namespace {
using dlpack::Managed;
using dlpack::ManagedVersioned;

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

void check_stream(const Tensor& t, const py::object& stream) {
  if (stream.is_none()) return;
  if (!PyLong_Check(stream.ptr()) || PyBool_Check(stream.ptr()))
    throw Error(ErrorKind::type, "[dlpack] stream: expected an integer or None, got " + shown(stream.ptr()));
  if (stream.cast<long long>() < -1)
    throw Error(ErrorKind::value,
                "[dlpack] stream: expected a stream's address, -1 or None, got " + shown(stream.ptr()));
  if (t.device->props.dl_device_type == kHostMemory && stream.cast<long long>() != -1)
    throw Error(ErrorKind::value,
                "[dlpack] stream: expected None, as " + t.device->name + " has no streams for others");
}

py::object export_array(const Tensor& array, const py::object& stream,
                        std::optional<std::pair<uint32_t, uint32_t>> max_version,
                        std::optional<std::pair<int32_t, int32_t>> dl_device, std::optional<bool> copy) {
  check_stream(array, stream);
  dlpack::ExportOptions options{.copy = copy, .shared_flags = dlpack::kReadOnly};
  options.versioned = max_version && max_version->first >= dlpack::kMajor;
  if (dl_device) options.device = dovetail::dl_device(dl_device->first, dl_device->second);
  if (!stream.is_none() && stream.cast<long long>() == -1) options.order = dlpack::Order::none;
  const Tensor held = array;
  auto e = dlpack::export_array(held, options);
  py::object capsule =
      options.versioned ? capsule_of(e->versioned, "dltensor_versioned") : capsule_of(e->managed, "dltensor");
  e.release();
  return capsule;
}

// The tensor of a capsule of either kind. The capsule is marked as consumed once the runtime owns the tensor.
class Imported {
 public:
  explicit Imported(PyObject* o) : capsule_(o), tensor_(open(o)) {}
  ~Imported() {
    if (tensor_.taken) PyCapsule_SetName(capsule_, tensor_.versioned ? "used_dltensor_versioned" : "used_dltensor");
  }
  Imported(const Imported&) = delete;
  dlpack::Foreign& tensor() { return tensor_; }

 private:
  static dlpack::Foreign open(PyObject* o) {
    const char* name = PyCapsule_CheckExact(o) ? PyCapsule_GetName(o) : nullptr;
    if (!name)
      throw Error(ErrorKind::type,
                  "[from_dlpack] expected a DLPack capsule, got " + std::string(Py_TYPE(o)->tp_name));
    if (std::strncmp(name, "used_", 5) == 0)
      throw Error(ErrorKind::value, "[from_dlpack] the capsule was consumed already");
    void* managed = PyCapsule_GetPointer(o, name);
    if (!managed) throw py::error_already_set();
    if (std::strcmp(name, "dltensor") == 0) return dlpack::Foreign(static_cast<Managed*>(managed));
    if (std::strcmp(name, "dltensor_versioned") == 0)
      return dlpack::Foreign(static_cast<ManagedVersioned*>(managed));
    throw Error(ErrorKind::type,
                "[from_dlpack] expected a DLPack capsule, got one named '" + std::string(name) + "'");
  }
  PyObject* capsule_;
  dlpack::Foreign tensor_;
};

// Brings the capsule's tensor to `target`. `home` is the device that owns its memory; None: plain memory of the
// host.
Tensor import_capsule(const py::object& capsule, const py::object& home, const py::object& target,
                      std::optional<bool> copy) {
  Imported in(capsule.ptr());
  Device* at = home.is_none() ? nullptr : &to_device(home.ptr());
  return dlpack::import_array(in.tensor(), at, to_device(target.ptr()), copy);
}

py::object home_of(int32_t type, int32_t id, const py::object& preferred) {
  Device* home = dlpack::home_of(dl_device(type, id), to_device(preferred.ptr()));
  return home ? py::reinterpret_borrow<py::object>(device_object(*home)) : py::none();
}

// For the producer's __dlpack__(stream=).
py::object native_stream(const py::object& device) {
  const std::optional<void*> stream = dlpack::native_stream(to_device(device.ptr()));
  if (!stream) return py::none();
  const auto handle = reinterpret_cast<uintptr_t>(*stream);
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
                    const dvt_props& p = x.device->props;
                    return std::make_pair(p.dl_device_type, p.dl_device_id);
                  },
                  py::name("__dlpack_device__"), py::is_method(type),
                  "(device type, device number), as DLPack numbers them."));
  m.def("import_dlpack", import_capsule);
  m.def("dlpack_home", home_of);
  m.def("native_stream", native_stream);
  make_dlpack_exchange(m);
}
}  // namespace dovetail::bindings
