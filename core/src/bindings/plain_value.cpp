#include "bindings/plain_value.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "bindings/array.hpp"

namespace dovetail::bindings {
namespace py = pybind11;

namespace {
#ifdef Py_TPFLAGS_MANAGED_DICT
constexpr unsigned long kManagedDict = Py_TPFLAGS_MANAGED_DICT;
#else
constexpr unsigned long kManagedDict = 0;
#endif

bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

// Where an instance of a user's subclass holds more than its value.
bool has_attributes(PyObject* o) {
  if (!Py_TYPE(o)->tp_dictoffset && !(Py_TYPE(o)->tp_flags & kManagedDict)) return false;
  const auto own = py::reinterpret_steal<py::object>(PyObject_GenericGetDict(o, nullptr));
  if (!own) PyErr_Clear();
  return !own || PyDict_GET_SIZE(own.ptr()) != 0;
}

// By the comparison of the builtin type, whatever a subclass makes of it.
bool equal_as(PyTypeObject& type, PyObject* a, PyObject* b) {
  const auto equal = py::reinterpret_steal<py::object>(type.tp_richcompare(a, b, Py_EQ));
  if (!equal) PyErr_Clear();
  return equal.ptr() == Py_True && !has_attributes(a) && !has_attributes(b);
}

// The memory of numbers of NumPy.
bool same_memory(PyObject* a, PyObject* b) {
  Py_buffer x, y;
  if (PyObject_GetBuffer(a, &x, PyBUF_SIMPLE) != 0) return PyErr_Clear(), false;
  bool same = PyObject_GetBuffer(b, &y, PyBUF_SIMPLE) == 0;
  if (same) {
    same = x.len == y.len && std::memcmp(x.buf, y.buf, size_t(x.len)) == 0;
    PyBuffer_Release(&y);
  } else {
    PyErr_Clear();
  }
  PyBuffer_Release(&x);
  return same;
}

bool same_attributes(PyObject* a, PyObject* b, std::initializer_list<const char*> names) {
  return std::ranges::all_of(names, [&](const char* name) {
    const auto x = py::reinterpret_steal<py::object>(PyObject_GetAttrString(a, name));
    const auto y = py::reinterpret_steal<py::object>(PyObject_GetAttrString(b, name));
    if (!x || !y) return PyErr_Clear(), false;
    return same_value(x.ptr(), y.ptr());
  });
}

// In the order in which Python goes through them.
bool same_elements(PyObject* a, PyObject* b) {
  if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b)) return false;
  const auto x = py::reinterpret_steal<py::object>(PyObject_GetIter(a));
  const auto y = py::reinterpret_steal<py::object>(PyObject_GetIter(b));
  for (Py_ssize_t i = PySet_GET_SIZE(a); x && y && i > 0; --i) {
    const auto mine = py::reinterpret_steal<py::object>(PyIter_Next(x.ptr()));
    const auto other = py::reinterpret_steal<py::object>(PyIter_Next(y.ptr()));
    if (!mine || !other || !same_value(mine.ptr(), other.ptr())) return PyErr_Clear(), false;
  }
  return x && y;
}

bool same_sequence(PyObject* a, PyObject* b) {
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(a);
  bool same = n == PySequence_Fast_GET_SIZE(b);
  for (Py_ssize_t i = 0; same && i < n; ++i)
    same = same_value(PySequence_Fast_GET_ITEM(a, i), PySequence_Fast_GET_ITEM(b, i));
  return same;
}

bool same_dict(PyObject* a, PyObject* b) {
  PyObject *key = nullptr, *value = nullptr, *other_key = nullptr, *other = nullptr;
  if (PyDict_GET_SIZE(a) != PyDict_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0, k = 0; PyDict_Next(a, &i, &key, &value);)
    if (!PyDict_Next(b, &k, &other_key, &other) || !same_value(key, other_key) || !same_value(value, other))
      return false;
  return true;
}
}  // namespace

bool same_value(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyUnicode_CheckExact(a)) return PyUnicode_Compare(a, b) == 0;
  if (PyUnicode_Check(a)) return equal_as(PyUnicode_Type, a, b);
  if (PyLong_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  if (PyLong_Check(a)) return equal_as(PyLong_Type, a, b);
  if (PyBytes_Check(a)) return equal_as(PyBytes_Type, a, b);
  if (PyFloat_CheckExact(a)) return same_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyComplex_CheckExact(a)) {
    const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return same_bits(x.real, y.real) && same_bits(x.imag, y.imag);
  }
  if (PyRange_Check(a) || PySlice_Check(a)) return same_attributes(a, b, {"start", "stop", "step"});
  if (PyFrozenSet_CheckExact(a) || Py_IS_TYPE(a, &PySet_Type)) return same_elements(a, b);
  if (PyList_CheckExact(a) || PyTuple_CheckExact(a)) return same_sequence(a, b);
  if (PyDict_CheckExact(a)) return same_dict(a, b);
  return is_number(a) && same_memory(a, b);
}
}  // namespace dovetail::bindings
