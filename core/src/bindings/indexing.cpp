// x[key] and x[key] = v. This file makes views for keys of ints, forward slices, None and one Ellipsis;
// dovetail._indexing handles all others (arrays, lists, backward slices).
#include <algorithm>

#include "bindings/python_device.hpp"
#include "dispatch/execute.hpp"
#include "text.hpp"

namespace dovetail::bindings {
namespace {
struct Region {
  Tensor view;                                                          // shares x's buffer
  int64_t start[DVT_MAX_NDIM], stop[DVT_MAX_NDIM], step[DVT_MAX_NDIM];  // over x's axes
  int out_axis[DVT_MAX_NDIM];  // the result's axis for each of x's; -1 where an int removed it
};
enum class Parsed { ok, advanced, error };

Parsed index_error(const Tensor& x, int axis, long long i) {
  PyErr_Format(PyExc_IndexError,
               "[index] index %lld is out of range for axis %d of size %lld: expected %lld to %lld", i, axis,
               (long long)x.size(axis), -(long long)x.size(axis), (long long)x.size(axis) - 1);
  return Parsed::error;
}

bool is_plain_int(PyObject* o) { return PyLong_Check(o) && !PyBool_Check(o); }

bool is_index(PyObject* o) {
  return is_plain_int(o) || (PyIndex_Check(o) && !is_array(o) && !PySequence_Check(o) && !PyBool_Check(o));
}

// An int (in start) or a slice of a key, not yet applied to an axis.
struct Picked {
  Py_ssize_t start, stop, step;
};

Parsed pick(PyObject* item, Picked& p) {
  if (!PySlice_Check(item)) {
    p.start = PyNumber_AsSsize_t(item, PyExc_IndexError);
    return p.start == -1 && PyErr_Occurred() ? Parsed::error : Parsed::ok;
  }
  if (PySlice_Unpack(item, &p.start, &p.stop, &p.step) < 0) return Parsed::error;
  return p.step < 0 ? Parsed::advanced : Parsed::ok;
}

// Takes one key item; `axis` and `out` advance over x's and the result's axes.
Parsed take_item(const Tensor& x, PyObject* item, Picked p, Region& r, int& axis, int& out) {
  if (item == Py_None) {
    r.view.size(out) = 1, r.view.stride(out) = 0;
    ++out;
    return Parsed::ok;
  }
  if (!PySlice_Check(item)) {
    const int64_t n = x.size(axis), i = p.start < 0 ? p.start + n : p.start;
    if (i < 0 || i >= n) return index_error(x, axis, p.start);
    r.start[axis] = i, r.stop[axis] = i + 1, r.step[axis] = 1, r.out_axis[axis] = -1;
    ++axis;
    return Parsed::ok;
  }
  const Py_ssize_t n = PySlice_AdjustIndices(x.size(axis), &p.start, &p.stop, p.step);
  r.start[axis] = p.start, r.step[axis] = p.step;
  r.stop[axis] = n ? p.start + (n - 1) * p.step + 1 : p.start;
  r.out_axis[axis] = out;
  r.view.size(out) = n, r.view.stride(out) = n > 1 ? x.stride(axis) * p.step : x.stride(axis);
  ++axis, ++out;
  return Parsed::ok;
}

Parsed parse(const Tensor& x, PyObject* key, Region& r) {
  PyObject* const* items = &key;
  Py_ssize_t n = 1;
  if (PyTuple_Check(key)) items = reinterpret_cast<PyTupleObject*>(key)->ob_item, n = PyTuple_GET_SIZE(key);
  int used = 0, added = 0, ellipsis = -1;
  Picked picked[DVT_MAX_NDIM];  // read before x's shape: __index__ may run any code and replace x's value
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (items[i] == Py_Ellipsis) {
      if (ellipsis >= 0)
        return PyErr_SetString(PyExc_IndexError, "[index] an index can have only one Ellipsis ('...')"),
               Parsed::error;
      ellipsis = int(i);
    } else if (items[i] == Py_None) {
      ++added;
    } else if (PySlice_Check(items[i]) || is_index(items[i])) {
      if (used < DVT_MAX_NDIM)
        if (const Parsed p = pick(items[i], picked[used]); p != Parsed::ok) return p;
      ++used;
    } else {
      return Parsed::advanced;
    }
  }
  if (used > x.rank())
    return PyErr_Format(PyExc_IndexError, "[index] too many indices: the array has %d axes, but %d were indexed",
                        x.rank(), used),
           Parsed::error;
  if (x.rank() + added > DVT_MAX_NDIM)
    return PyErr_Format(PyExc_IndexError, "[index] the result would have %d axes: expected at most %d",
                        x.rank() + added, DVT_MAX_NDIM),
           Parsed::error;
  r.view = x;
  int axis = 0, out = 0, next = 0;
  auto whole = [&](int until) {
    for (; axis < until; ++axis, ++out) {
      r.start[axis] = 0, r.stop[axis] = x.size(axis), r.step[axis] = 1;
      r.out_axis[axis] = out;
      r.view.size(out) = x.size(axis), r.view.stride(out) = x.stride(axis);
    }
  };
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (i == ellipsis) {
      int behind = 0;
      for (Py_ssize_t k = i + 1; k < n; ++k) behind += items[k] != Py_None;
      whole(x.rank() - behind);
    } else {
      const Picked p = items[i] == Py_None ? Picked{} : picked[next++];
      if (take_item(x, items[i], p, r, axis, out) == Parsed::error) return Parsed::error;
    }
  }
  whole(x.rank());
  int64_t offset = 0;
  for (int a = 0; a < x.rank(); ++a) offset += r.start[a] * x.stride(a);
  r.view.set_rank(out);
  r.view.update_dense();
  if (r.view.numel) r.view.view.data = static_cast<char*>(x.view.data) + offset * info(x.dtype).bytes();
  return Parsed::ok;
}

// Whether a value of dtype `from` may be stored into an array of `to`: within a kind, or to a wider one.
bool storable(DType from, DType to) {
  const DKind f = info(from).kind, t = info(to).kind;
  return f <= t || (f == DKind::unsigned_int && t == DKind::signed_int) || (is_integer(from) && is_integer(to));
}

Tensor value_for(PyObject* v, const Tensor& x, py::object& keep) {
  if (is_number(v)) {
    const DType own = weak_dtype(v, DType::none);
    if (!storable(own, x.dtype))
      throw Error(ErrorKind::type, std::string("[setitem] cannot store a ") + Py_TYPE(v)->tp_name +
                                       " in an array of " + info(x.dtype).name + ": use .astype() on one of them");
    return scalar_from(v, x.dtype, "setitem");
  }
  if (!is_array(v))
    keep = lazy("_creation", "asarray")(py::handle(v), py::arg("device") = py::handle(device_object(*x.device))),
    v = keep.ptr();
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

// `v`, which broadcasts to the shape of x[key], as a view over x's own axes.
Tensor over_axes(const Tensor& v, const Tensor& x, const Region& r) {
  const int rank = r.view.rank();
  Tensor trimmed = v;  // without leading axes of size 1 that the selection lacks, as in NumPy
  const int lead = std::max(0, v.rank() - rank);
  bool fits = std::all_of(v.dims, v.dims + lead, [](int64_t n) { return n == 1; });
  trimmed.set_rank(v.rank() - lead);
  for (int i = 0; i < trimmed.rank(); ++i) {
    trimmed.size(i) = v.size(i + lead), trimmed.stride(i) = v.stride(i + lead);
    fits = fits && (trimmed.size(i) == 1 || trimmed.size(i) == r.view.size(rank - trimmed.rank() + i));
  }
  if (!fits)
    throw Error(ErrorKind::value, "[setitem] a value of shape " + to_string(v.shape()) +
                                      " does not broadcast to the selection's shape " + to_string(r.view.shape()));
  const Tensor spread = broadcast_view(trimmed, r.view.shape());
  Tensor out = spread;
  out.set_rank(x.rank());
  for (int a = 0; a < x.rank(); ++a) {
    const int from = r.out_axis[a];
    out.size(a) = from < 0 ? 1 : spread.size(from);
    out.stride(a) = from < 0 ? 0 : spread.stride(from);
  }
  out.update_dense();
  return out;
}

void assign(PyObject* self, Region& r, PyObject* value) {
  static const Op& set_slice = op("set_slice");
  Tensor& x = tensor_of(self);
  py::object keep;
  Tensor v = value_for(value, x, keep);
  if (v.device) v = over_axes(v, x, r);
  if (r.view.numel == 0) return;
  r.view = Tensor();  // releases its share of the buffer
  Attrs attrs;
  const auto n = size_t(x.rank());
  attrs.set_ints(0, {r.start, n}), attrs.set_ints(1, {r.stop, n}), attrs.set_ints(2, {r.step, n});
  const Tensor* in[] = {&x, &v};
  Tensor result;
  Invocation inv{.op = set_slice, .device = x.device, .in = in, .n_in = 2, .attrs = attrs, .replaced = &x};
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
    Region r;
    switch (parse(tensor_of(self), key, r)) {
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
    Region r;
    switch (parse(tensor_of(self), key, r)) {
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
