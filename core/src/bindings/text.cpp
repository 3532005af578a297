// Converts text between Python and the runtime. On either side it may not be well-formed UTF-8.
#include "bindings/array.hpp"

namespace dovetail::bindings {
std::string utf8(PyObject* text) {
  Py_ssize_t size = 0;
  if (const char* all = PyUnicode_AsUTF8AndSize(text, &size)) return {all, size_t(size)};
  PyErr_Clear();
  const auto escaped =
      py::reinterpret_steal<py::bytes>(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
  if (!escaped) throw py::error_already_set();
  return std::string(escaped);
}

std::string shown(PyObject* o) {
  constexpr size_t most = 200;
  const auto repr = py::reinterpret_steal<py::object>(PyObject_Repr(o));
  if (!repr) {  // an integer with too many digits, or a class whose __repr__ raises
    PyErr_Clear();
    return std::string("a value of ") + Py_TYPE(o)->tp_name;
  }
  if (size_t(PyUnicode_GET_LENGTH(repr.ptr())) <= most) return utf8(repr.ptr());
  const auto begin = py::reinterpret_steal<py::object>(PyUnicode_Substring(repr.ptr(), 0, most));
  if (!begin) throw py::error_already_set();
  return utf8(begin.ptr()) + "...";
}

py::str str_of(std::string_view text) {
  PyObject* made = PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "backslashreplace");
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(made);
}
}  // namespace dovetail::bindings
