// The DType objects: one per data type, compared by identity, and by value with names and NumPy dtypes.
#include "bindings/array.hpp"

namespace dovetail::bindings {
namespace {
struct PyDType {
  DType value;
};
PyObject* objects[kDTypes];

constexpr const char* kind_name(DKind k) {
  constexpr const char* names[] = {"bool", "signed integer", "unsigned integer", "real floating",
                                   "complex floating"};
  return names[int(k)];
}

std::optional<DType> by_name(std::string_view name) {
  for (int i = 0; i < kDTypes; ++i)
    if (name == dtype_table[i].name) return DType(i);
    else if (name == dtype_table[i].brief && !is_packed(DType(i))) return DType(i);  // "i4" is NumPy's int32
  return std::nullopt;
}

std::optional<DType> convert(PyObject* o) {
  if (py::isinstance<PyDType>(o)) return py::cast<PyDType&>(py::handle(o)).value;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::b8;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return kDefaultInt;
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return kDefaultFloat;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DType::c64;
  py::object name = py::reinterpret_borrow<py::object>(o);
  if (!PyUnicode_Check(
          o)) {  // an np.dtype has a name; scalar types (np.float32, ml_dtypes.bfloat16) have it as __name__
    name = py::getattr(o, PyType_Check(o) ? "__name__" : "name", py::none());
    if (!PyUnicode_Check(name.ptr())) return std::nullopt;
  }
  return by_name(utf8(name.ptr()));
}
}  // namespace

PyObject* dtype_object(DType t) { return objects[int(t)]; }

DType to_dtype(PyObject* o, const char* function) {
  if (const std::optional<DType> t = convert(o)) return *t;
  std::string known;
  for (const DTypeInfo& d : dtype_table) known += (known.empty() ? "" : ", ") + std::string(d.name);
  const std::string whose = function ? "[" + std::string(function) + "] " : "";
  throw Error(ErrorKind::type, whose + shown(o) + " is no dtype: expected one of " + known);
}

void make_dtypes(py::module_& m) {
  py::class_<PyDType>(m, "DType", "A data type. Compares equal to its name and to the NumPy dtype of that name.")
      .def_property_readonly("name", [](const PyDType& d) { return info(d.value).name; })
      .def_property_readonly("brief", [](const PyDType& d) { return info(d.value).brief; })
      .def_property_readonly(
          "itemsize", [](const PyDType& d) { return int(info(d.value).bytes()); },
          "Bytes of one element; 1 of those that share a byte.")
      .def_property_readonly(
          "bits", [](const PyDType& d) { return info(d.value).bits(); }, "Bits of one element.")
      .def_property_readonly(
          "byteorder", [](const PyDType& d) { return info(d.value).bytes() == 1 ? "|" : "="; },
          "As NumPy's: '=' for the host's order, '|' for single bytes.")
      .def_property_readonly("kind", [](const PyDType& d) { return kind_name(info(d.value).kind); })
      .def("__repr__", [](const PyDType& d) { return std::string("dovetail.") + info(d.value).name; })
      .def("__str__", [](const PyDType& d) { return info(d.value).name; })
      .def("__hash__", [](const PyDType& d) { return py::hash(py::str(info(d.value).name)); })
      .def("__reduce__",
           [](const PyDType& d) { return info(d.value).name; })  // a name in the package: one object per process
      .def("__eq__", [](const PyDType& d, const py::object& o) {
        const auto other = convert(o.ptr());
        return other && *other == d.value;
      });
  make_with_new(m.attr("DType"));
  py::dict all, packed;
  py::set foreign, stored;
  for (int i = 0; i < kDTypes; ++i) {
    py::object o = py::cast(PyDType{DType(i)});
    all[dtype_table[i].name] = o;
    if (is_foreign(DType(i))) foreign.add(dtype_table[i].name);
    if (is_stored(DType(i))) stored.add(dtype_table[i].name);
    if (is_packed(DType(i))) packed[dtype_table[i].name] = info(unpacked(DType(i))).name;
    objects[i] = o.release().ptr();  // one per process
  }
  m.attr("dtypes") = all;
  m.attr("foreign_dtypes") = foreign;
  m.attr("stored_dtypes") = stored;
  m.attr("packed_dtypes") = packed;
  m.def("promote", [](const py::object& a, const py::object& b) -> py::object {
    const auto t = promote(to_dtype(a.ptr(), "result_type"), to_dtype(b.ptr(), "result_type"));
    return t ? py::reinterpret_borrow<py::object>(dtype_object(*t)) : py::none();
  });
  m.def("to_dtype", [](const py::object& o) {
    return py::reinterpret_borrow<py::object>(dtype_object(to_dtype(o.ptr(), "dtype")));
  });
}
}  // namespace dovetail::bindings
