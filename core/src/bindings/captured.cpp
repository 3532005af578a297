#include "bindings/captured.hpp"

#include <utility>

#include "bindings/plain_value.hpp"

namespace dovetail::bindings {
namespace {
PyTypeObject* deque_type() {
  static PyObject* const type = py::object(py::module_::import("collections").attr("deque")).release().ptr();
  return reinterpret_cast<PyTypeObject*>(type);
}

// The value of a key, borrowed. It is looked for at `place` first, which is set: most dicts do not change.
PyObject* find(PyObject* dict, PyObject* key, Py_ssize_t& place) {
  PyObject *found = nullptr, *value = nullptr;
  Py_ssize_t next = place;
  if (PyDict_Next(dict, &next, &found, &value) && found == key) [[likely]]
    return value;
  value = PyDict_GetItemWithError(dict, key);
  if (!value) return PyErr_Clear(), nullptr;
  constexpr Py_ssize_t kFew = 32;  // keys: looking through them takes as long as a few look-ups
  Py_ssize_t here = next = 0;
  for (; here < kFew && PyDict_Next(dict, &next, &found, nullptr); here = next)
    if (found == key) return place = here, value;
  return value;
}

PyObject* dict_of(PyObject* o) {
  if (const Py_ssize_t offset = Py_TYPE(o)->tp_dictoffset; offset > 0) [[likely]]
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + offset);
  PyObject** const dict = _PyObject_GetDictPtr(o);
  return dict ? *dict : nullptr;
}

PyObject* attribute(PyObject* o, PyObject* name, Py_ssize_t& place) {
  if (PyObject* const dict = dict_of(o))
    if (PyObject* const found = find(dict, name, place)) return Py_NewRef(found);
  return Py_XNewRef(_PyType_Lookup(Py_TYPE(o), name));
}

PyObject* slot(PyObject* o, PyObject* descriptor) {
  const auto get = Py_TYPE(descriptor)->tp_descr_get;
  PyObject* const found = get ? get(descriptor, o, reinterpret_cast<PyObject*>(Py_TYPE(o))) : nullptr;
  if (!found) PyErr_Clear();
  return found;
}

// The `at`th key and value, borrowed; nullptr where there are fewer.
std::pair<PyObject*, PyObject*> item_at(PyObject* dict, Py_ssize_t at) {
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t place = 0; at >= 0 && PyDict_Next(dict, &place, &key, &value);)
    if (at-- == 0) return {key, value};
  return {};
}

PyObject* element(PyObject* o, Py_ssize_t at) {
  if (PyList_Check(o)) return at < PyList_GET_SIZE(o) ? Py_NewRef(PyList_GET_ITEM(o, at)) : nullptr;
  if (PyTuple_Check(o)) return at < PyTuple_GET_SIZE(o) ? Py_NewRef(PyTuple_GET_ITEM(o, at)) : nullptr;
  if (PyDict_Check(o)) return Py_XNewRef(item_at(o, at).second);
  PyObject* found = nullptr;
  if (Py_IS_TYPE(o, deque_type())) {
    found = PySequence_GetItem(o, at);
  } else if (PyAnySet_CheckExact(o)) {
    const auto all = py::reinterpret_steal<py::object>(PyObject_GetIter(o));
    for (; all && at >= 0; --at) {
      Py_XDECREF(found);
      if (!(found = PyIter_Next(all.ptr()))) break;
    }
  }
  if (!found) PyErr_Clear();
  return found;
}

// -1 of what has none.
Py_ssize_t length_of(PyObject* o) {
  if (PyList_Check(o)) return PyList_GET_SIZE(o);
  if (PyTuple_Check(o)) return PyTuple_GET_SIZE(o);
  if (PyDict_Check(o)) return PyDict_GET_SIZE(o);
  if (PyAnySet_Check(o)) return PySet_GET_SIZE(o);
  return Py_IS_TYPE(o, deque_type()) ? PySequence_Size(o) : -1;
}

bool is_key(PyObject* key, PyObject* expected) {
  if (PyWeakref_Check(expected)) return target(expected) == key;
  return same_value(key, expected);
}

// An OrderedDict has an order of its own.
bool has_ordered_keys(PyObject* dict, PyObject* keys) {
  const auto each = py::reinterpret_steal<py::object>(PyODict_Type.tp_iter(dict));
  for (Py_ssize_t i = 0; each && i < PyTuple_GET_SIZE(keys); ++i) {
    const auto key = py::reinterpret_steal<py::object>(PyIter_Next(each.ptr()));
    if (!key || !is_key(key.ptr(), PyTuple_GET_ITEM(keys, i))) return PyErr_Clear(), false;
  }
  if (!each) PyErr_Clear();
  return bool(each);
}

bool has_keys(PyObject* dict, PyObject* keys) {
  if (PyODict_Check(dict)) return has_ordered_keys(dict, keys);
  PyObject* key = nullptr;
  Py_ssize_t place = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i)
    if (!PyDict_Next(dict, &place, &key, nullptr) || !is_key(key, PyTuple_GET_ITEM(keys, i))) return false;
  return true;
}

}  // namespace

PyObject* target(PyObject* o) {
  if (!PyWeakref_Check(o)) return o;
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* found = nullptr;
  if (PyWeakref_GetRef(o, &found) == 1) Py_DECREF(found);
  return found;
#else
  PyObject* const found = PyWeakref_GET_OBJECT(o);
  return found == Py_None ? nullptr : found;
#endif
}

PyObject* Hop::follow(PyObject* parent) const {
  switch (kind) {
    case constant: return key.inc_ref().ptr();
    case argument: return Py_XNewRef(parent);
    case attribute: return bindings::attribute(parent, key.ptr(), place);
    case slot: return bindings::slot(parent, key.ptr());
    case lookup:
      return PyType_Check(parent) ? Py_XNewRef(_PyType_Lookup(reinterpret_cast<PyTypeObject*>(parent), key.ptr()))
                                  : nullptr;
    case item: return PyDict_Check(parent) ? Py_XNewRef(find(parent, key.ptr(), place)) : nullptr;
    case element: return bindings::element(parent, at);
    case key_at: return PyDict_Check(parent) ? Py_XNewRef(item_at(parent, at).first) : nullptr;
  }
  return nullptr;
}

bool Expectation::holds(PyObject* o) const {
  switch (kind) {
    case nothing: return true;
    case identity: return o == what.ptr();
    case value: return same_value(o, what.ptr());
    case type: break;
  }
  if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != what.ptr()) return false;
  return (length < 0 || length_of(o) == length) && (!keys || has_keys(o, keys.ptr()));
}

}  // namespace dovetail::bindings
