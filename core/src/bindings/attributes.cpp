// Converts attributes of a call from Python values to dvt_attr and, for decompositions, back.
#include "bindings/array.hpp"

namespace dovetail::bindings {
namespace {
[[noreturn]] void refuse(const Op& op, const ParamSpec& p, const char* expected, PyObject* got) {
  throw Error(ErrorKind::type,
              "[" + op.spec.name + "] " + p.name + ": expected " + expected + ", got " + shown(got));
}

int64_t integer(const Op& op, const ParamSpec& p, PyObject* value) {
  if (PyBool_Check(value) || !PyIndex_Check(value)) refuse(op, p, "an integer", value);
  const py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(value));
  if (!index) throw py::error_already_set();
  int overflow = 0;
  const long long i = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow)
    throw Error(ErrorKind::value,
                "[" + op.spec.name + "] " + p.name + ": " + shown(index.ptr()) + " does not fit in 64 bits");
  return i;
}

void set_integers(const Op& op, Attrs& attrs, int i, const ParamSpec& p, PyObject* value) {
  if (PyIndex_Check(value) && !is_array(value)) {
    const int64_t one = integer(op, p, value);
    return attrs.set_ints(i, {&one, 1});
  }
  if (!PySequence_Check(value)) refuse(op, p, "an integer or a sequence of integers", value);
  // A tuple, because an element's __index__ may change a list.
  const py::object list = py::reinterpret_steal<py::object>(PySequence_Tuple(value));
  if (!list) throw py::error_already_set();
  const Py_ssize_t n = PyTuple_GET_SIZE(list.ptr());
  int64_t* to = n > Py_ssize_t(2 * DVT_MAX_NDIM) ? nullptr : attrs.room(int(n));
  if (!to)
    throw Error(ErrorKind::value, "[" + op.spec.name + "] " + p.name + ": " + std::to_string(n) +
                                      " values: expected at most " + std::to_string(DVT_MAX_NDIM) + " axes");
  for (Py_ssize_t k = 0; k < n; ++k) to[k] = integer(op, p, PyTuple_GET_ITEM(list.ptr(), k));
  attrs.at[i] = {DVT_A_I64S, uint32_t(n), {.is = to}};
}

// A Python number of any kind; complex numbers take two doubles of the space for integers.
void set_scalar(const Op& op, Attrs& attrs, int i, const ParamSpec& p, PyObject* value) {
  dvt_attr& a = attrs.at[i];
  if (!is_number(value)) refuse(op, p, "a number", value);
  if (PyBool_Check(value)) {
    a = {DVT_A_BOOL, 1, {.i = value == Py_True}};
  } else if (PyIndex_Check(value)) {
    const py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(value));
    if (!index) throw py::error_already_set();
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    a = {DVT_A_I64, 1, {.i = number}};
    if (overflow > 0) {
      a = {DVT_A_U64, 1, {.raw = PyLong_AsUnsignedLongLong(index.ptr())}};
      if (PyErr_Occurred()) overflow = -1;
      PyErr_Clear();
    }
    if (overflow < 0)
      throw Error(ErrorKind::value,
                  "[" + op.spec.name + "] " + p.name + ": " + shown(value) + " does not fit in 64 bits");
  } else if (is_complex_number(value)) {
    const Py_complex c = PyComplex_AsCComplex(value);
    if (PyErr_Occurred()) throw py::error_already_set();
    auto* parts = reinterpret_cast<double*>(attrs.room(2));
    parts[0] = c.real, parts[1] = c.imag;
    a = {DVT_A_F64S, 2, {.fs = parts}};
  } else {
    a = {DVT_A_F64, 1, {.f = PyFloat_AsDouble(value)}};
    if (PyErr_Occurred()) throw py::error_already_set();
  }
}
}  // namespace

void set_attr(const Op& op, Attrs& attrs, int i, const ParamSpec& p, PyObject* value) {
  dvt_attr& a = attrs.at[i];
  if (value == Py_None) {
    const bool has_default = p.fallback.kind != AttrDefault::required;
    if (p.fallback.kind == AttrDefault::none || (p.kind == ParamKind::dtype && has_default) || p.name == "axis") {
      a = {DVT_A_NONE, 0, {.raw = 0}};
      return;
    }
  }
  switch (p.kind) {
    case ParamKind::i64: a = {DVT_A_I64, 1, {.i = integer(op, p, value)}}; break;
    case ParamKind::f64:
      if (!is_number(value) || is_complex_number(value)) refuse(op, p, "a number", value);
      a = {DVT_A_F64, 1, {.f = PyFloat_AsDouble(value)}};
      if (PyErr_Occurred()) throw py::error_already_set();
      break;
    case ParamKind::boolean: {
      if (!PyBool_Check(value) && !PyLong_Check(value)) refuse(op, p, "True or False", value);
      a = {DVT_A_BOOL, 1, {.i = PyObject_IsTrue(value)}};
      break;
    }
    case ParamKind::str: {
      Py_ssize_t size = 0;
      const char* text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &size) : nullptr;
      if (!text) {
        PyErr_Clear();
        refuse(op, p, "a string", value);
      }
      a = {DVT_A_STR, uint32_t(size), {.s = text}};
      break;
    }
    case ParamKind::i64s: set_integers(op, attrs, i, p, value); break;
    case ParamKind::dtype:
      if (value == Py_None) refuse(op, p, "a dtype", value);
      a = {DVT_A_DTYPE, 1, {.dt = info(to_dtype(value)).dl}};
      break;
    case ParamKind::scalar: set_scalar(op, attrs, i, p, value); break;
    case ParamKind::program: refuse(op, p, "a program, which only nodes of programs hold", value);
    default: refuse(op, p, "an attribute", value);
  }
}

py::object attr_value(const dvt_attr& a) {
  switch (a.kind) {
    case DVT_A_I64: return py::int_(a.v.i);
    case DVT_A_U64: return py::int_(a.v.raw);
    case DVT_A_F64: return py::float_(a.v.f);
    case DVT_A_BOOL: return py::bool_(a.v.i != 0);
    case DVT_A_STR: return py::str(a.v.s, a.count);
    case DVT_A_F64S: return py::reinterpret_steal<py::object>(PyComplex_FromDoubles(a.v.fs[0], a.v.fs[1]));
    case DVT_A_DTYPE: return py::str(info(*dtype_of(a.v.dt)).name);
    case DVT_A_I64S: {
      py::tuple values(a.count);
      for (uint32_t k = 0; k < a.count; ++k) values[k] = py::int_(a.v.is[k]);
      return py::object(values);
    }
    default: return py::none();
  }
}
}  // namespace dovetail::bindings
