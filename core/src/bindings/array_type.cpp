// The Array type: operators, conversions and the attributes that must be fast. dovetail._array adds the methods
// that are written in Python.
#include <unordered_map>

#include "bindings/interchange.hpp"
#include "bindings/recorder.hpp"
#include "dispatch/execute.hpp"
#include "text.hpp"

namespace dovetail::bindings {
PyTypeObject* array_type;

namespace {
// ---- operators --------------------------------------------------------------------------------------------------
enum Operator {
  op_add,
  op_subtract,
  op_multiply,
  op_divide,
  op_floor_divide,
  op_remainder,
  op_pow,
  op_matmul,
  op_and,
  op_or,
  op_xor,
  op_left_shift,
  op_right_shift,
  op_negative,
  op_positive,
  op_abs,
  op_invert,
  op_less,
  op_less_equal,
  op_equal,
  op_not_equal,
  op_greater,
  op_greater_equal,
  n_operators
};
constexpr const char* operator_names[n_operators] = {"add",
                                                     "subtract",
                                                     "multiply",
                                                     "divide",
                                                     "floor_divide",
                                                     "remainder",
                                                     "pow",
                                                     "matmul",
                                                     "bitwise_and",
                                                     "bitwise_or",
                                                     "bitwise_xor",
                                                     "bitwise_left_shift",
                                                     "bitwise_right_shift",
                                                     "negative",
                                                     "positive",
                                                     "abs",
                                                     "bitwise_invert",
                                                     "less",
                                                     "less_equal",
                                                     "equal",
                                                     "not_equal",
                                                     "greater",
                                                     "greater_equal"};
const Op* operators[n_operators];

bool is_numpy_array(PyObject* o) { return std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0; }

// Python's own message would mislead: that concatenation is not implemented, or that x == [1] is False.
bool looks_like_array(Operator which, PyObject* o) {
  return (PyList_Check(o) || PyTuple_Check(o)) && which != op_multiply;  // [0] * n repeats a list
}

// With a NumPy array as the other operand, which becomes an Array on this one's device.
PyObject* apply_to_numpy(Operator which, PyObject* const* operands, PyObject* replaced) {
  try {
    const py::tuple made = lazy("_numpy", "operands")(py::handle(operands[0]), py::handle(operands[1]));
    PyObject* const arrays[] = {PyTuple_GET_ITEM(made.ptr(), 0), PyTuple_GET_ITEM(made.ptr(), 1)};
    Attrs attrs;
    return call(*operators[which], arrays, 2, attrs, nullptr, replaced);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* apply(Operator which, PyObject* const* operands, int n, PyObject* replaced) {
  if (PyObject* const trace = recorder()) [[unlikely]]
    return record_operator(trace, *operators[which], operands, n, replaced != nullptr);
  Attrs attrs;
  PyObject* out = call(*operators[which], operands, n, attrs, nullptr, replaced);
  if (out || PyErr_Occurred()) [[likely]]
    return out;
  for (int i = 0; i < n; ++i) {
    if (is_numpy_array(operands[i]) && is_array(operands[1 - i])) return apply_to_numpy(which, operands, replaced);
    if (looks_like_array(which, operands[i])) return refuse_operand(*operators[which], operands[i]);
  }
  Py_RETURN_NOTIMPLEMENTED;  // Python then tries the reflected operator, as of a tracer
}
template <Operator which>
PyObject* binary(PyObject* a, PyObject* b) {
  PyObject* const operands[] = {a, b};
  return apply(which, operands, 2, nullptr);
}
template <Operator which>
PyObject* in_place(PyObject* a, PyObject* b) {
  PyObject* const operands[] = {a, b};
  return apply(which, operands, 2, a);
}
template <Operator which>
PyObject* unary(PyObject* a) {
  return apply(which, &a, 1, nullptr);
}
PyObject* power(PyObject* a, PyObject* b, PyObject*) { return binary<op_pow>(a, b); }
PyObject* in_place_power(PyObject* a, PyObject* b, PyObject*) { return in_place<op_pow>(a, b); }

PyObject* compare(PyObject* a, PyObject* b, int how) {
  static constexpr Operator by_code[] = {op_less,      op_less_equal, op_equal,
                                         op_not_equal, op_greater,    op_greater_equal};
  PyObject* const operands[] = {a, b};
  return apply(by_code[how], operands, 2, nullptr);
}

// ---- arrays without elements ------------------------------------------------------------------------------------
std::unordered_map<PyObject*, std::string>& given_away() {  // why, of those that are alive; guarded by the GIL
  static auto& all = *new std::unordered_map<PyObject*, std::string>;
  return all;
}

PyObject* refuse(PyObject* array) {
  try {
    refuse_without_elements(array);
  } catch (...) {
    set_python_error();
  }
  return nullptr;
}

// ---- one element as a Python number -----------------------------------------------------------------------------
PyObject* item(PyObject* self, PyObject*) {
  const Tensor& t = tensor_of(self);
  if (!has_elements(self)) return refuse(self);
  if (t.numel != 1)
    return PyErr_Format(PyExc_TypeError,
                        "[item] only an array of one element can become a Python number: the shape is %s",
                        to_string(t.shape()).c_str());
  try {
    expect_readable(self, "the element of an array");
    alignas(16) std::byte bits[16] = {};
    Tensor host = host_scalar(t.dtype, bits);
    const Tensor held = t;
    if (held.device->host_mapped) {
      host_access(*held.storage, false);
      std::memcpy(host.view.data, held.view.data, info(t.dtype).bytes());
    } else {
      Stream& stream = current_stream(*held.device);
      use(*held.storage, stream, false);
      DLTensor from = held.view;
      from.ndim = 0;
      copy_bytes(*held.device, stream, host.view, from);
    }
    switch (info(t.dtype).kind) {
      case DKind::boolean: return PyBool_FromLong(*static_cast<uint8_t*>(host.view.data));
      case DKind::signed_int: {
        const Tensor wide = cast_scalar(host, DType::i64);
        return PyLong_FromLongLong(*static_cast<int64_t*>(wide.view.data));
      }
      case DKind::unsigned_int: {
        const Tensor wide = cast_scalar(host, DType::u64);
        return PyLong_FromUnsignedLongLong(*static_cast<uint64_t*>(wide.view.data));
      }
      case DKind::floating: {
        const Tensor wide = cast_scalar(host, DType::f64);
        return PyFloat_FromDouble(*static_cast<double*>(wide.view.data));
      }
      default: {
        const Tensor wide = cast_scalar(host, DType::c128);
        const auto* parts = static_cast<double*>(wide.view.data);
        return PyComplex_FromDoubles(parts[0], parts[1]);
      }
    }
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

int truth(PyObject* self) {
  if (!has_elements(self)) return refuse(self), -1;
  if (tensor_of(self).numel != 1) {
    PyErr_Format(PyExc_ValueError,
                 "[bool] the truth of an array of shape %s is ambiguous: use any() or all(), "
                 "and &, | and ~ in place of and, or and not",
                 to_string(tensor_of(self).shape()).c_str());
    return -1;
  }
  PyObject* value = item(self, nullptr);
  const int result = value ? PyObject_IsTrue(value) : -1;
  Py_XDECREF(value);
  return result;
}

template <PyObject* (*convert)(PyObject*)>
PyObject* as_number(PyObject* self) {
  PyObject* value = item(self, nullptr);
  PyObject* result = value ? convert(value) : nullptr;
  Py_XDECREF(value);
  return result;
}

PyObject* as_index(PyObject* self) {
  if (!has_elements(self)) return refuse(self);
  if (is_integer(tensor_of(self).dtype)) return item(self, nullptr);
  return PyErr_Format(PyExc_TypeError,
                      "[index] got an array of %s, expected an integer array of one element: int(x) makes a number",
                      info(tensor_of(self).dtype).name);
}

// ---- attributes -------------------------------------------------------------------------------------------------
PyObject* int_tuple(std::span<const int64_t> values) {
  PyObject* tuple = PyTuple_New(Py_ssize_t(values.size()));
  for (size_t i = 0; tuple && i < values.size(); ++i)
    PyTuple_SET_ITEM(tuple, Py_ssize_t(i), PyLong_FromLongLong(values[i]));
  return tuple;
}
// What follows from the sizes of an array; a trace may have them as numbers of its program.
template <PyObject* (*get)(const Tensor&)>
PyObject* of_sizes(PyObject* self, void* name) {
  if (PyObject* const trace = recorder()) [[unlikely]] {
    PyObject* const found = ask_about(trace, self, static_cast<const char*>(name));
    if (found != Py_None) return found;
    Py_DECREF(found);
  }
  return get(tensor_of(self));
}
PyObject* shape_of(const Tensor& t) { return int_tuple(t.shape()); }
PyObject* size_of(const Tensor& t) { return PyLong_FromUnsignedLongLong(t.numel); }
void* name_of(const char* name) { return const_cast<char*>(name); }
PyObject* get_strides(PyObject* self, void*) { return int_tuple(tensor_of(self).strides()); }
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(tensor_of(self).rank()); }
template <PyObject* (*get)(const Tensor&)>
PyObject* of_elements(PyObject* self, void*) {
  return has_elements(self) ? get(tensor_of(self)) : refuse(self);
}
PyObject* nbytes_of(const Tensor& t) { return PyLong_FromUnsignedLongLong(t.bytes()); }
PyObject* itemsize_of(const Tensor& t) { return PyLong_FromLong(info(t.dtype).bytes()); }
PyObject* dtype_of(const Tensor& t) { return Py_NewRef(dtype_object(t.dtype)); }
PyObject* device_of(const Tensor& t) { return Py_NewRef(device_object(*t.device)); }

Py_ssize_t length(PyObject* self) {
  if (tensor_of(self).rank()) {
    if (!recorder()) [[likely]]
      return Py_ssize_t(tensor_of(self).size(0));
    const auto shape = py::reinterpret_steal<py::object>(of_sizes<shape_of>(self, name_of("shape")));
    return shape ? PyNumber_AsSsize_t(PyTuple_GET_ITEM(shape.ptr(), 0), PyExc_OverflowError) : -1;
  }
  PyErr_SetString(PyExc_TypeError, "[len] an array without axes has no length: x.size is 1");
  return -1;
}

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (reinterpret_cast<PyArray*>(self)->weakrefs) PyObject_ClearWeakRefs(self);
  if (!has_elements(self)) [[unlikely]]
    given_away().erase(self);
  tensor_of(self).~Tensor();
  PyObject_Free(self);
  Py_DECREF(type);
}

// PyArray is no class for offsetof: weakrefs comes right after its head.
PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, sizeof(PyObject), READONLY, nullptr}, {}};
PyGetSetDef getters[] = {
    {"shape", of_sizes<shape_of>, nullptr, "Sizes of the axes.", name_of("shape")},
    {"strides", get_strides, nullptr, "Steps along the axes, in elements.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of axes.", nullptr},
    {"size", of_sizes<size_of>, nullptr, "Number of elements.", name_of("size")},
    {"nbytes", of_elements<nbytes_of>, nullptr, "Bytes of all elements.", nullptr},
    {"itemsize", of_elements<itemsize_of>, nullptr, "Bytes of one element.", nullptr},
    {"dtype", of_elements<dtype_of>, nullptr, "Data type.", nullptr},
    {"device", of_elements<device_of>, nullptr, "The device that holds the elements.", nullptr},
    {}};
PyMethodDef methods[] = {{"item", item, METH_NOARGS, "The only element as a Python number. Waits for the device."},
                         {}};

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}
PyObject* make_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "[Array] is not called: dovetail.asarray() makes an array");
  return nullptr;
}

PyType_Slot slots[] = {{Py_tp_dealloc, slot(dealloc)},
                       {Py_tp_members, members},
                       {Py_tp_getset, getters},
                       {Py_tp_methods, methods},
                       {Py_tp_richcompare, slot(compare)},
                       {Py_tp_hash, slot(PyObject_HashNotImplemented)},
                       {Py_nb_add, slot(binary<op_add>)},
                       {Py_nb_inplace_add, slot(in_place<op_add>)},
                       {Py_nb_subtract, slot(binary<op_subtract>)},
                       {Py_nb_inplace_subtract, slot(in_place<op_subtract>)},
                       {Py_nb_multiply, slot(binary<op_multiply>)},
                       {Py_nb_inplace_multiply, slot(in_place<op_multiply>)},
                       {Py_nb_true_divide, slot(binary<op_divide>)},
                       {Py_nb_inplace_true_divide, slot(in_place<op_divide>)},
                       {Py_nb_floor_divide, slot(binary<op_floor_divide>)},
                       {Py_nb_inplace_floor_divide, slot(in_place<op_floor_divide>)},
                       {Py_nb_remainder, slot(binary<op_remainder>)},
                       {Py_nb_inplace_remainder, slot(in_place<op_remainder>)},
                       {Py_nb_power, slot(power)},
                       {Py_nb_inplace_power, slot(in_place_power)},
                       {Py_nb_matrix_multiply, slot(binary<op_matmul>)},
                       {Py_nb_inplace_matrix_multiply, slot(in_place<op_matmul>)},
                       {Py_nb_and, slot(binary<op_and>)},
                       {Py_nb_inplace_and, slot(in_place<op_and>)},
                       {Py_nb_or, slot(binary<op_or>)},
                       {Py_nb_inplace_or, slot(in_place<op_or>)},
                       {Py_nb_xor, slot(binary<op_xor>)},
                       {Py_nb_inplace_xor, slot(in_place<op_xor>)},
                       {Py_nb_lshift, slot(binary<op_left_shift>)},
                       {Py_nb_inplace_lshift, slot(in_place<op_left_shift>)},
                       {Py_nb_rshift, slot(binary<op_right_shift>)},
                       {Py_nb_inplace_rshift, slot(in_place<op_right_shift>)},
                       {Py_nb_negative, slot(unary<op_negative>)},
                       {Py_nb_positive, slot(unary<op_positive>)},
                       {Py_nb_absolute, slot(unary<op_abs>)},
                       {Py_nb_invert, slot(unary<op_invert>)},
                       {Py_nb_bool, slot(truth)},
                       {Py_nb_int, slot(as_number<PyNumber_Long>)},
                       {Py_nb_float, slot(as_number<PyNumber_Float>)},
                       {Py_nb_index, slot(as_index)},
                       {Py_mp_length, slot(length)},
                       {Py_mp_subscript, slot(get_item)},
                       {Py_mp_ass_subscript, slot(set_item)},
                       {Py_tp_new, slot(make_new)},
                       {Py_tp_doc, const_cast<char*>("An array on a device: a value that nothing else changes. "
                                                     "dovetail.asarray() and the ops make them.")},
                       {}};
// Arrays hold no Python objects, so the type needs no GC. It has no subclasses, so is_array() compares types only.
PyType_Spec spec{"dovetail.Array", sizeof(PyArray), 0, Py_TPFLAGS_DEFAULT, slots};
}  // namespace

PyObject* new_array() {
  auto* self = PyObject_New(PyArray, array_type);
  if (!self) return nullptr;
  self->weakrefs = nullptr, self->met = 0;
  new (&self->tensor) Tensor();
  return reinterpret_cast<PyObject*>(self);
}

void leave_without_elements(PyObject* array, std::string why) {
  Tensor none;
  none.set_shape(tensor_of(array).shape());
  tensor_of(array) = std::move(none);
  given_away()[array] = std::move(why);
}

void refuse_without_elements(PyObject* array) {
  const auto found = given_away().find(array);
  throw Error(ErrorKind::runtime, found == given_away().end() ? "[Array] it has no elements" : found->second);
}

PyObject* new_array(Tensor value) {
  PyObject* self = new_array();
  if (self) tensor_of(self) = std::move(value);
  return self;
}

void make_array_type(py::module_& m) {
  for (int i = 0; i < n_operators; ++i) operators[i] = &op(operator_names[i]);
  array_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(m.ptr(), &spec, nullptr));
  if (!array_type) throw py::error_already_set();
  m.attr("Array") = py::handle(reinterpret_cast<PyObject*>(array_type));
}
}  // namespace dovetail::bindings
