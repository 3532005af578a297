// Copies arrays from and to the host's memory, implements the buffer protocol, and lets Python code replace an
// array's value.
#include "bindings/interchange.hpp"

#include <pybind11/stl.h>

#include "bindings/recorder.hpp"
#include "dispatch/execute.hpp"
#include "text.hpp"

namespace dovetail::bindings {
static const Tensor& tensor_of_checked(const py::object& x) {
  if (!is_array(x.ptr())) throw Error(ErrorKind::type, "expected an array, got " + shown(x.ptr()));
  expect_elements(x.ptr());
  return tensor_of(x.ptr());
}

// ---- copies -----------------------------------------------------------------------------------------------------
py::object wrap(Tensor t) {
  PyObject* o = new_array(std::move(t));
  if (!o) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(o);
}

std::vector<int64_t> to_shape(const py::object& shape, const char* op) {
  std::vector<int64_t> sizes;
  auto add = [&](PyObject* o) {
    const bool many = is_array(o) && tensor_of(o).rank();  // a sequence whose elements are on a device
    if (PyBool_Check(o) || !PyIndex_Check(o) || many)
      throw Error(ErrorKind::type, std::string("[") + op +
                                       "] shape: expected an integer or a sequence of integers, got " +
                                       shown(shape.ptr()));
    const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(o));
    if (!index) throw py::error_already_set();
    int overflow = 0;
    const long long n = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow)
      throw Error(ErrorKind::value,
                  std::string("[") + op + "] shape: " + shown(index.ptr()) + " does not fit in 64 bits");
    sizes.push_back(n);
  };
  if (PySequence_Check(shape.ptr()) && !is_array(shape.ptr()) && !PyUnicode_Check(shape.ptr())) {
    const auto all = py::reinterpret_steal<py::tuple>(PySequence_Tuple(shape.ptr()));
    if (!all) throw py::error_already_set();
    for (const py::handle n : all) add(n.ptr());
  } else {
    add(shape.ptr());
  }
  return sizes;
}

// ---- the buffer protocol ----------------------------------------------------------------------------------------
// Array itself has no buffers: numpy.asarray() would take a read-only one, where it expects memory to write to.
namespace {
struct Export {
  Tensor held;  // shares the buffer, so that the array's next in-place write goes elsewhere
  Py_ssize_t shape[DVT_MAX_NDIM], strides[DVT_MAX_NDIM];
};

// The format codes of struct and NumPy; bfloat16 and 8-bit floats have none. NumPy's int64 is long where that has
// 64 bits.
const char* buffer_format(DType t) {
  constexpr bool wide = sizeof(long) == 8;
  static constexpr const char* i64 = wide ? "l" : "q";
  static constexpr const char* u64 = wide ? "L" : "Q";
  static constexpr const char* formats[kDTypes] = {"?",     "b",     "h", "i",     i64, "B", "H",  "I", u64,
                                                   nullptr, nullptr, "e", nullptr, "f", "d", "Zf", "Zd"};
  return formats[int(t)];
}

const char* refusal(const Tensor& t, int flags) {
  if (!t.device->host_mapped) return "its memory is not the host's";
  if (flags & PyBUF_WRITABLE) return "buffers of arrays are read-only: numpy.array(x) makes a copy to write to";
  if ((flags & PyBUF_FORMAT) && !buffer_format(t.dtype))
    return "the buffer protocol has no such dtype: use x.numpy()";
  const bool needs_c = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS || !(flags & (PyBUF_STRIDES & ~PyBUF_ND));
  if (needs_c && !t.dense) return "its elements are not contiguous: use x.copy()";
  return nullptr;
}

// The elements of an Array, read-only, through the buffer protocol.
struct PyElements {
  PyObject_HEAD PyObject* array;
};
PyTypeObject* elements_type;

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  PyObject* const array = reinterpret_cast<PyElements*>(self)->array;
  if (!has_elements(array)) {
    PyErr_SetString(PyExc_BufferError, "no buffer of an array that was donated");
    return -1;
  }
  const Tensor& t = tensor_of(array);
  if (const char* why = refusal(t, flags)) {
    PyErr_Format(PyExc_BufferError, "no buffer of an array of %s on %s: %s", info(t.dtype).name,
                 t.device->name.c_str(), why);
    return -1;
  }
  try {
    auto e = std::make_unique<Export>(Export{.held = t, .shape = {}, .strides = {}});
    host_access(*e->held.storage, false);
    const Tensor& held = e->held;
    const Py_ssize_t item = info(held.dtype).bytes();
    for (int i = 0; i < held.rank(); ++i) e->shape[i] = held.size(i), e->strides[i] = held.stride(i) * item;
    *view = {.buf = held.view.data,
             .obj = Py_NewRef(self),
             .len = Py_ssize_t(held.bytes()),
             .itemsize = item,
             .readonly = 1,
             .ndim = held.rank(),
             .format = flags & PyBUF_FORMAT ? const_cast<char*>(buffer_format(held.dtype)) : nullptr,
             .shape = flags & PyBUF_ND ? e->shape : nullptr,
             .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? e->strides : nullptr,
             .suboffsets = nullptr,
             .internal = nullptr};
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !PyBuffer_IsContiguous(view, 'F')) {
      Py_CLEAR(view->obj);
      PyErr_SetString(PyExc_BufferError, "no Fortran-ordered buffer of this array");
      return -1;
    }
    view->internal = e.release();
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Export*>(view->internal); }

void dealloc_elements(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_DECREF(reinterpret_cast<PyElements*>(self)->array);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyType_Slot elements_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc_elements)},
                                {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                                {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                                {}};
PyType_Spec elements_spec{"dovetail.Elements", sizeof(PyElements), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, elements_slots};

py::object elements(const py::object& x) {
  if (!is_array(x.ptr())) throw Error(ErrorKind::type, "[elements] expected an array, got " + shown(x.ptr()));
  expect_readable(x.ptr(), "the elements of an array");
  auto* made = PyObject_New(PyElements, elements_type);
  if (!made) throw py::error_already_set();
  made->array = Py_NewRef(x.ptr());
  const auto owner = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(made));
  PyObject* view = PyMemoryView_FromObject(owner.ptr());
  if (!view) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(view);
}
}  // namespace

// ---- values replaced --------------------------------------------------------------------------------------------
namespace {
void assign(const py::object& self, const Tensor& value) {
  if (!is_array(self.ptr())) throw Error(ErrorKind::type, "[assign] expected an array");
  expect_elements(self.ptr());
  Tensor& x = tensor_of(self.ptr());
  if (value.dtype != x.dtype || value.device != x.device || !value.same_shape(x))
    throw Error(ErrorKind::value, "[assign] expected a value of the array's shape, dtype and device");
  x = value;
}

// x[indices] = updates along one axis, or without `axis` over x's elements in row-major order. Writes to x's own
// memory where no other array shares it.
void put(const py::object& self, const Tensor& indices, const Tensor& updates, std::optional<int64_t> axis) {
  static const Op& scatter = op("scatter");
  expect_elements(self.ptr());
  const Storage* before = tensor_of(self.ptr()).storage;
  Tensor x = tensor_of(self.ptr());
  if (!x.dense) x = compact(x);
  const bool alone =
      x.storage->refs.load(std::memory_order_acquire) == (x.storage == before ? 2u : 1u) && is_pooled(*x.storage);
  const std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
  if (!axis) {
    const auto n = int64_t(x.numel);
    x.set_shape({&n, 1});
  }
  Attrs attrs = scatter.defaults;
  attrs.at[0] = {DVT_A_I64, 1, {.i = axis.value_or(0)}};
  const Tensor* in[] = {&x, &indices, &updates};
  Tensor result;
  Invocation inv(scatter, x.device, in, 3, attrs);
  inv.replaced = &x;
  inv.out[0] = &result;
  inv.infer();
  inv.in_place = alone && result.dtype == x.dtype;
  {
    const Tensor held[] = {indices, updates};
    in[1] = &held[0], in[2] = &held[1];
    const GilRelease others_run(inv.work * info(x.dtype).bytes() > kManyBytes);
    inv.run();
  }
  result.set_shape(shape);
  assign(self, result);
}

// x = op(operands...), in x's memory where the op allows it and no other array shares the memory.
void replace(const py::object& self, const py::object& function, const py::args& operands) {
  const Op* op = op_of(function.ptr());
  if (!op || !is_array(self.ptr())) throw Error(ErrorKind::type, "[replace] expected an array and an op");
  Attrs attrs = (*op).defaults;
  std::vector<PyObject*> given;
  for (const py::handle o : operands) given.push_back(o.ptr());
  PyObject* result = call(*op, given.data(), int(given.size()), attrs, nullptr, self.ptr());
  if (!result && !PyErr_Occurred())
    throw Error(ErrorKind::type, "[" + op->spec.name + "] expected arrays or Python numbers");
  if (!result) throw py::error_already_set();
  Py_DECREF(result);
}

class BufferView {  // a Python object's buffer, for a scope
 public:
  BufferView(const py::object& o, int flags) {
    if (PyObject_GetBuffer(o.ptr(), &view, flags) < 0) throw py::error_already_set();
  }
  ~BufferView() { PyBuffer_Release(&view); }
  BufferView(const BufferView&) = delete;
  Py_buffer view;
};

void expect_bytes(const char* what, uint64_t expected, Py_ssize_t got) {
  if (expected != uint64_t(got))
    throw Error(ErrorKind::value, std::string("[") + what + "] a buffer of " + std::to_string(got) +
                                      " bytes: expected " + std::to_string(expected));
}

py::object from_buffer(const py::object& buffer, const py::object& dtype, const py::object& shape,
                       const py::object& device) {
  const BufferView from(buffer, PyBUF_SIMPLE);
  const std::vector<int64_t> sizes = to_shape(shape, "from_buffer");
  Tensor t;  // to compute the number of bytes
  t.set_type(to_dtype(dtype.ptr(), "from_buffer"), &to_device(device.ptr()));
  t.set_shape(sizes);
  expect_bytes("from_buffer", t.bytes(), from.view.len);
  return wrap(upload(from.view.buf, t.dtype, sizes, *t.device));
}

void read_into(const py::object& array, const py::object& buffer) {
  const Tensor& x = tensor_of_checked(array);
  expect_readable(array.ptr(), "the elements of an array");
  const BufferView to(buffer, PyBUF_WRITABLE);
  expect_bytes("read_into", x.bytes(), to.view.len);
  const Tensor held = x;
  download(held, to.view.buf);
}

py::bytes to_bytes(const py::object& array) {
  const Tensor& x = tensor_of_checked(array);
  expect_readable(array.ptr(), "the elements of an array");
  const Tensor held = x;
  py::bytes bytes(static_cast<const char*>(nullptr), held.bytes());
  download(held, PyBytes_AS_STRING(bytes.ptr()));
  return bytes;
}
}  // namespace

void make_interchange(py::module_& m) {
  m.def(
      "empty",
      [](const py::object& shape, const py::object& dtype, const py::object& device) {
        try {
          return wrap(
              empty_tensor(to_dtype(dtype.ptr(), "empty"), to_shape(shape, "empty"), to_device(device.ptr())));
        } catch (const Error& e) {
          throw e.what()[0] == '[' || e.kind == ErrorKind::type ? e
                                                                : Error(e.kind, "[empty] " + std::string(e.what()));
        }
      },
      "An array with uninitialised elements.");
  m.def("from_buffer", from_buffer, "A copy of row-major host memory: (buffer, dtype, shape, device).");
  elements_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&elements_spec));
  if (!elements_type) throw py::error_already_set();
  m.def("elements", elements,
        "A read-only memoryview of the elements, without a copy; BufferError where the host "
        "cannot read them.");
  m.def("read_into", read_into,
        "Copies all elements, row-major, into a writable buffer of the same number of bytes.");
  m.def("to_bytes", to_bytes);
  m.def("to_device", [](const Tensor& x, const py::object& device) {
    Device& d = to_device(device.ptr());
    const Tensor held = x;
    const GilRelease others_run(held.device != &d && held.bytes() > kManyBytes);
    Tensor moved = dovetail::to_device(held, d);
    return moved;
  });
  m.def(
      "share",
      [](const py::object& x) -> py::object {
        if (PyObject* const trace = recorder()) return py::handle(trace).attr("share")(x);
        return wrap(tensor_of_checked(x));
      },
      "Another array of the same value, without a copy.");
  m.def("same_memory", [](const Tensor& x, const Tensor& y) { return x.storage == y.storage; });
  m.def("assign", assign, "x takes the value of an array of the same shape, dtype and device.");
  m.def("put", put, py::arg("x"), py::arg("indices"), py::arg("updates"), py::arg("axis") = py::none());
  m.def("replace", replace);
  make_dlpack(m);
  make_sequences(m);
  make_safetensors(m);
  make_searching(m);
  make_runtime_arrays(m);
}
}  // namespace dovetail::bindings
