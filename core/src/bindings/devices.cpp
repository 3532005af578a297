// Devices, streams, backends, threads and logs.
#include <pybind11/stl.h>

#include <optional>
#include <unordered_map>

#include "bindings/python_device.hpp"
#include "device/guard.hpp"
#include "device/services.hpp"
#include "platform/platform.hpp"

namespace dovetail::bindings {
namespace {
struct PyDevice {
  Device* device;
};

const char* kind_name(uint32_t kind) {
  static constexpr const char* names[] = {"cpu", "gpu", "npu", "other"};
  return names[kind > 3 ? 3 : kind];
}

py::dict properties(const Device& d) {
  const dvt_props& p = d.props;
  py::list caps;
  if (p.caps & DVT_CAP_HOST_MAPPED) caps.append("host_mapped");
  if (p.caps & DVT_CAP_P2P) caps.append("p2p");
  if (p.caps & DVT_CAP_FORK_SAFE) caps.append("fork_safe");
  py::dict peaks;
  for (uint32_t i = 0; i < std::min<uint32_t>(p.n_peaks, 8); ++i)
    if (const auto t = dtype_of(p.peaks[i].dtype)) peaks[info(*t).brief] = p.peaks[i].flops;
  py::dict all(py::arg("name") = str_of(p.name), py::arg("arch") = str_of(p.arch), py::arg("uuid") = str_of(p.uuid),
               py::arg("pci") = str_of(p.pci), py::arg("caps") = caps, py::arg("mem_total") = p.mem_total,
               py::arg("alloc_align") = p.alloc_align, py::arg("max_streams") = p.max_streams,
               py::arg("peak_bytes_per_s") = p.peak_bytes_per_s, py::arg("peaks") = peaks,
               py::arg("dl_device_type") = p.dl_device_type, py::arg("dl_device_id") = p.dl_device_id,
               py::arg("synchronous") = !d.has_streams(), py::arg("host_mapped") = d.host_mapped);
  uint64_t free_bytes = 0, total = 0;
  if (DVT_HAS(d.backend->table, dvt_backend, mem_info) &&
      d.backend->table->mem_info(d.handle, &free_bytes, &total) == DVT_OK)
    all["mem_free"] = d.host_mapped ? std::min(free_bytes, platform::free_in_group()) : free_bytes;
  return all;
}

py::list pack_list(const Backend& b) {
  py::list all;
  for (const KernelPack* p : packs(b))
    all.append(py::dict(py::arg("name") = p->name, py::arg("version") = p->version, py::arg("library") = p->library,
                        py::arg("build_info") = p->table->build_info ? p->table->build_info : "",
                        py::arg("n_kernels") = p->table->n_kernels, py::arg("notes") = p->notes));
  return all;
}

py::list backend_list() {
  py::list all;
  for (const Backend* b : backends()) {
    py::list names;
    for (const Device* d : b->devices) names.append(d->name);
    all.append(py::dict(
        py::arg("name") = b->name, py::arg("version") = str_of(b->version), py::arg("library") = str_of(b->library),
        py::arg("build_info") = str_of(b->table->build_info ? b->table->build_info : ""),
        py::arg("abi") = std::to_string(b->table->abi_major) + "." + std::to_string(b->table->abi_minor),
        py::arg("n_kernels") = b->table->n_kernels, py::arg("devices") = names, py::arg("packs") = pack_list(*b),
        py::arg("notes") = b->notes));
  }
  return all;
}
}  // namespace

PyObject* device_object(Device& d) {
  static auto& objects = *new std::unordered_map<const Device*, PyObject*>;
  PyObject*& o = objects[&d];
  if (!o) o = py::cast(PyDevice{&d}).release().ptr();
  return o;
}

Device& to_device(PyObject* o) {
  refuse_reentry();
  if (o != Py_None && py::isinstance<PyDevice>(o)) return *py::cast<PyDevice&>(py::handle(o)).device;
  if (PyUnicode_Check(o))
    if (Device* d = find_device(utf8(o))) return *d;
  const py::object found =
      call_lazy("_devices", "device", py::handle(o));  // looks for backends; raises where there is none
  return *py::cast<PyDevice&>(found).device;
}

void make_devices(py::module_& m) {
  py::class_<PyDevice>(m, "Device", "A device, as dovetail.device('cpu:0') returns it. Compares equal to its name.")
      .def_property_readonly("name", [](const PyDevice& d) { return d.device->name; })
      .def_property_readonly("backend", [](const PyDevice& d) { return d.device->backend->name; })
      .def_property_readonly(
          "index", [](const PyDevice& d) { return d.device->ordinal; }, "Its number within the backend.")
      .def_property_readonly("kind", [](const PyDevice& d) { return kind_name(d.device->props.kind); })
      .def_property_readonly("arch", [](const PyDevice& d) { return str_of(d.device->props.arch); })
      .def_property_readonly("properties", [](const PyDevice& d) { return properties(*d.device); })
      .def(
          "synchronize", [](const PyDevice& d) { d.device->synchronize(); },
          "Waits for all work on the device; raises a fault that it found.")
      .def(
          "reset", [](const PyDevice& d) { d.device->reset(); },
          "Brings a lost device back; the content of its memory is gone.")
      .def("__reduce__",
           [](const PyDevice& d) {
             return py::make_tuple(lazy("_devices", "device"), py::make_tuple(d.device->name));
           })
      .def("__repr__", [](const PyDevice& d) { return "dovetail.device('" + d.device->name + "')"; })
      .def("__str__", [](const PyDevice& d) { return d.device->name; })
      .def("__hash__", [](const PyDevice& d) { return py::hash(py::str(d.device->name)); })
      .def("__enter__", [](const py::object& self) { return call_lazy("_devices", "enter", self); })
      .def("__exit__", [](const py::object& self, const py::args&) { call_lazy("_devices", "leave", self); })
      .def("__eq__", [](const PyDevice& d, const py::object& o) {
        if (py::isinstance<PyDevice>(o)) return o.cast<PyDevice&>().device == d.device;
        return py::isinstance<py::str>(o) && find_device(utf8(o.ptr())) == d.device;
      });
  make_with_new(m.attr("Device"));
  m.def(
      "devices",
      [] {
        py::list all;
        for (Device* d : devices()) all.append(py::reinterpret_borrow<py::object>(device_object(*d)));
        return all;
      },
      "Devices of the backends opened so far.");
  m.def("refuse_reentry", refuse_reentry, "Raises RuntimeError inside a Python device's kernel.");
  m.def("find_device", [](const py::str& name) -> py::object {
    refuse_reentry();
    Device* d = find_device(utf8(name.ptr()));
    return d ? py::reinterpret_borrow<py::object>(device_object(*d)) : py::none();
  });
  m.def("backends", backend_list);
  m.def(
      "load_backend",
      [](const std::string& name, const std::string& library, const std::vector<std::string>& search) {
        const GilRelease others_run;
        return load_backend(name, library, search).name;
      },
      "Opens a plugin in this process; raises RuntimeError, whose attribute `cure` is the user's next step.");
  m.def(
      "absence",
      [](const std::string& name) {
        for (const Backend* b : backends())
          if (b->name == name) return str_of(b->absence);
        throw py::key_error(name);
      },
      "The backend's own reason for having no device; \"\" where it has one or gives no reason.");
  m.def(
      "load_kernels",
      [](const std::string& backend, const std::string& name, const std::string& library,
         const std::vector<std::string>& search) {
        for (Backend* b : backends()) {
          if (b->name != backend) continue;
          const GilRelease others_run;
          return load_kernels(*b, name, library, search).name;
        }
        throw Error(ErrorKind::value, "there is no backend '" + backend + "'");
      },
      "Opens a kernel pack for a backend; raises RuntimeError, whose attribute `cure` is the user's next step.");
  m.def(
      "device_table",
      [](const py::object& device) {
        const Device& d = to_device(device.ptr());
        return py::make_tuple(reinterpret_cast<uintptr_t>(d.backend->table), reinterpret_cast<uintptr_t>(d.handle));
      },
      "Addresses of a device's dvt_backend and dvt_device: the conformance suite calls its functions itself.");
  m.def(
      "take_failure",
      [](dvt_status status) {
        const Failure f = take_failure(status);
        return py::make_tuple(f.correlation_id, str_of(f.message));
      },
      "The correlation id and the message that a plugin reported with this status on this thread.");
  m.def("num_threads", num_threads);
  m.def("set_num_threads", set_num_threads);
  m.def("set_logs", set_logs);
}

// Adds a function that returns whether the check is enabled, and switches it if it gets an argument.
static void make_switch(py::module_& m, const char* name, DebugCheck check, void (*enable)(bool), const char* doc) {
  m.def(
      name,
      [check, enable](std::optional<bool> on) {
        const bool before = enabled(check);
        if (on) enable(*on);
        return before;
      },
      py::arg("on") = py::none(), doc);
}

void make_memory(py::module_& m) {
  m.def("memory_stats", [](const py::object& device) {
    const MemoryStats s = memory_stats(to_device(device.ptr()));
    return py::dict(py::arg("in_use") = s.in_use, py::arg("peak") = s.peak, py::arg("cached") = s.cached,
                    py::arg("reserved") = s.reserved, py::arg("packed") = s.packed, py::arg("limit") = s.limit,
                    py::arg("device_allocations") = s.device_allocations, py::arg("device_frees") = s.device_frees);
  });
  m.def("reset_peak_memory", [](const py::object& device) { reset_peak_memory(to_device(device.ptr())); });
  m.def("set_memory_limit",
        [](const py::object& device, uint64_t bytes) { set_memory_limit(to_device(device.ptr()), bytes); });
  m.def("empty_cache", [](const py::object& device) { empty_cache(to_device(device.ptr())); });
  make_switch(m, "guard_memory", guarded_memory, guard_memory,
              "Whether arrays lie between guards, as DOVETAIL_GUARD_MEMORY=1 has it; with `on`, switches it.");
  make_switch(
      m, "poison_calls", poisoned_calls, poison_calls,
      "Whether calls are overwritten when their kernel returns, as DOVETAIL_POISON_CALLS=1 has it; with `on`, "
      "switches it.");
  m.def(
      "memory_overruns",
      [](const py::object& device) {
        py::list found;
        for (const Overrun& o : overruns(to_device(device.ptr())))
          found.append(py::make_tuple(str_of(o.op), str_of(to_string(o))));
        return found;
      },
      "The writes out of bounds found since the last call: for each buffer, the op that wrote it last, and a "
      "description.");
}
}  // namespace dovetail::bindings
