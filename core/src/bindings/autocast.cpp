#include "bindings/autocast.hpp"

namespace dovetail::bindings {
bool autocast_used = false;

namespace {
// A context variable, so that threads and asyncio's tasks have their own: a tuple of scopes, of which the last one
// applies.
PyObject* scopes;

using Scope = std::shared_ptr<Autocast>;

Scope make_scope(const py::object& dtype, const py::object& device, bool enabled) {
  auto made = std::make_shared<Autocast>();
  if (!dtype.is_none()) made->dtype = to_dtype(dtype.ptr(), "autocast");
  if (!device.is_none()) made->device = &to_device(device.ptr());
  made->enabled = enabled;
  made->outer = autocast_of_context();
  autocast_used = true;
  return made;
}

// The dtypes that a scope gives to the operands of a call: the dtype, or None for what stays as it is.
py::list casts_of(const std::string& name, const py::object& device, const py::sequence& dtypes) {
  const DType lower = lower_dtype_here(to_device(device.ptr()));
  py::list casts;
  int operand = 0;
  for (const py::handle dtype : dtypes) {
    const DType given = dtype.is_none() ? DType::none : to_dtype(dtype.ptr());
    const DType wanted = autocast_dtype(op(name), operand++, given, lower);
    casts.append(wanted == given ? py::object(py::none()) : py::str(info(wanted).name));
  }
  return casts;
}
}  // namespace

std::shared_ptr<const Autocast> autocast_of_context() {
  PyObject* value = nullptr;
  if (PyContextVar_Get(scopes, nullptr, &value) < 0) throw py::error_already_set();
  const auto all = py::reinterpret_steal<py::object>(value);
  if (!all || !PyTuple_GET_SIZE(all.ptr())) return nullptr;
  return py::handle(PyTuple_GET_ITEM(all.ptr(), PyTuple_GET_SIZE(all.ptr()) - 1)).cast<Scope>();
}

void make_autocast(py::module_& m) {
  py::class_<Autocast, Scope>(m, "Autocast", py::dynamic_attr(),
                              "What a scope of dovetail.autocast() casts, inside the current one.");
  make_with_new(m.attr("Autocast"), py::cpp_function(make_scope));
  scopes = PyContextVar_New("dovetail.autocast", nullptr);
  if (!scopes) throw py::error_already_set();
  m.attr("autocast_scopes") = py::handle(scopes);
  m.def("autocast_used", [] { return autocast_used; }, "Whether this process has ever made a scope.");
  m.def(
      "autocast_dtype",
      [](const py::object& device) -> py::object {
        const DType lower = lower_dtype_here(to_device(device.ptr()));
        return lower == DType::none ? py::object(py::none()) : py::str(info(lower).name);
      },
      "The dtype to which calls on the device lower operands here, or None.");
  m.def("autocast_casts", casts_of,
        "Of a call's operands the dtypes that they are cast to here, None for those that stay as they are.");
}
}  // namespace dovetail::bindings
