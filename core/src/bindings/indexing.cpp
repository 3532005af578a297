// x[key] and x[key] = v. This file makes views for keys of ints, forward slices, None and one Ellipsis;
// dovetail._indexing handles all others (arrays, lists, backward slices).
#include <vector>

#include "bindings/python_device.hpp"
#include "bindings/recorder.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/indexing.hpp"

namespace dovetail::bindings {
namespace {
enum class Parsed { ok, advanced, error };

bool is_plain_int(PyObject* o) { return PyLong_Check(o) && !PyBool_Check(o); }

bool is_index(PyObject* o) {
  return is_plain_int(o) || (PyIndex_Check(o) && !is_array(o) && !PySequence_Check(o) && !PyBool_Check(o));
}

Parsed read_item(PyObject* o, IndexItem& item) {
  if (o == Py_Ellipsis) {
    item.kind = IndexItem::ellipsis;
  } else if (o == Py_None) {
    item.kind = IndexItem::new_axis;
  } else if (PySlice_Check(o)) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(o, &start, &stop, &step) < 0) return Parsed::error;
    if (step < 0) return Parsed::advanced;
    item = {IndexItem::slice, start, stop, step};
  } else if (is_index(o)) {
    item = {IndexItem::at, PyNumber_AsSsize_t(o, PyExc_IndexError)};
    if (item.start == -1 && PyErr_Occurred()) return Parsed::error;
  } else {
    return Parsed::advanced;
  }
  return Parsed::ok;
}

// Reads the whole key before x's shape: __index__ may run any code and replace x's value.
Parsed parse(PyObject* self, PyObject* key, Region& r) {
  PyObject* const* items = &key;
  size_t n = 1;
  if (PyTuple_Check(key)) items = reinterpret_cast<PyTupleObject*>(key)->ob_item, n = size_t(PyTuple_GET_SIZE(key));
  IndexItem few[DVT_MAX_NDIM];
  std::vector<IndexItem> many;
  IndexItem* read = few;
  if (n > std::size(few)) many.resize(n), read = many.data();
  for (size_t i = 0; i < n; ++i)
    if (const Parsed p = read_item(items[i], read[i]); p != Parsed::ok) return p;
  r = select(tensor_of(self), {read, n});
  return Parsed::ok;
}

// Whether a value of dtype `from` may be stored into an array of `to`: within a kind, or to a wider one.
bool storable(DType from, DType to) {
  const DKind f = info(from).kind, t = info(to).kind;
  return f <= t || (f == DKind::unsigned_int && t == DKind::signed_int) || (is_integer(from) && is_integer(to));
}

Tensor value_for(PyObject* self, PyObject* v, const Tensor& x, py::object& keep) {
  if (is_number(v)) {
    const DType own = own_dtype(v);
    if (!storable(own, x.dtype))
      throw Error(ErrorKind::type, std::string("[setitem] cannot store a ") + Py_TYPE(v)->tp_name +
                                       " in an array of " + info(x.dtype).name + ": use .astype() on one of them");
    return scalar_from(v, x.dtype, "setitem");
  }
  if (!is_array(v)) keep = lazy("_indexing", "stored")(py::handle(self), py::handle(v)), v = keep.ptr();
  expect_elements(v);
  Tensor t = tensor_of(v);  // a wait may let other threads run
  if (t.device != x.device && t.rank() == 0 && t.device->props.kind == DVT_KIND_CPU)
    t = dovetail::to_device(t, *x.device);
  if (t.device != x.device)
    throw Error(ErrorKind::value, "[setitem] arrays on " + x.device->name + " and " + t.device->name +
                                      ": bring one over with .to_device()");
  if (!storable(t.dtype, x.dtype))
    throw Error(ErrorKind::type, std::string("[setitem] cannot store ") + info(t.dtype).name + " in an array of " +
                                     info(x.dtype).name + ": use .astype() on one of them");
  return t.dtype == x.dtype ? t : cast(t, x.dtype, *x.device);
}

void assign(PyObject* self, Region& r, PyObject* value) {
  static const Op& set_slice = op("set_slice");
  Tensor& x = tensor_of(self);
  py::object keep;
  Tensor v = value_for(self, value, x, keep);
  if (v.device) v = over_axes(v, x, r);
  if (r.view.numel == 0) return;
  r.view = Tensor();  // releases its share of the buffer
  Attrs attrs;
  const auto n = size_t(x.rank());
  attrs.set_ints(0, {r.start, n}), attrs.set_ints(1, {r.stop, n}), attrs.set_ints(2, {r.step, n});
  const Tensor* in[] = {&x, &v};
  Tensor result;
  Invocation inv(set_slice, x.device, in, 2, attrs);
  inv.replaced = &x;
  inv.out[0] = &result;
  inv.infer();
  const Tensor held = x;  // a wait may let other threads run
  in[0] = inv.replaced = &held;
  inv.run();
  x = std::move(result);
}
}  // namespace

PyObject* get_item(PyObject* self, PyObject* key) {
  try {
    if (PyObject* const trace = recorder()) [[unlikely]]
      return py::handle(trace).attr("get_item")(py::handle(self), py::handle(key)).release().ptr();
    expect_elements(self);
    Region r;
    switch (parse(self, key, r)) {
      case Parsed::ok: return new_array(std::move(r.view));
      case Parsed::advanced:
        return call_lazy("_indexing", "getitem", py::handle(self), py::handle(key)).release().ptr();
      default: return nullptr;
    }
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  if (!value) {
    PyErr_SetString(PyExc_TypeError,
                    "[setitem] elements of an array cannot be deleted: select those to keep, x[mask]");
    return -1;
  }
  try {
    if (PyObject* const trace = recorder()) [[unlikely]]
      return py::handle(trace).attr("set_item")(py::handle(self), py::handle(key), py::handle(value)), 0;
    expect_elements(self);
    Region r;
    switch (parse(self, key, r)) {
      case Parsed::ok: return assign(self, r, value), 0;
      case Parsed::advanced:
        return call_lazy("_indexing", "setitem", py::handle(self), py::handle(key), py::handle(value)), 0;
      default: return -1;
    }
  } catch (...) {
    set_python_error();
    return -1;
  }
}
}  // namespace dovetail::bindings
