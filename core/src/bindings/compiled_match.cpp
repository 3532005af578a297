#include "bindings/compiled_match.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dovetail::bindings {
// ---- arguments by parameter -------------------------------------------------------------------------------------
namespace {
int position(const Parameters& p, PyObject* key) {
  const int n = int(p.names.size());
  for (int i = p.n_positional_only; i < n; ++i)
    if (p.names[size_t(i)].ptr() == key) return i;
  for (int i = p.n_positional_only; i < n; ++i)  // a name made at run time is not interned
    if (PyUnicode_Compare(p.names[size_t(i)].ptr(), key) == 0) return i;
  return -1;
}
}  // namespace

bool BoundArguments::bind(const Parameters& p, PyObject* const* args, int nargs, PyObject* kwnames) {
  values.assign(p.names.size(), nullptr);
  const int n_named = std::min(nargs, p.n_positional);
  std::copy_n(args, n_named, values.begin());
  if (nargs > n_named) {
    if (!p.extra_positional) return false;
    values.insert(values.end(), args + n_named, args + nargs);
    n_extra = nargs - n_named;
  }
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    PyObject* const key = PyTuple_GET_ITEM(kwnames, k);
    const int i = position(p, key);
    if (i >= 0) {
      if (values[size_t(i)]) return false;
      values[size_t(i)] = args[nargs + k];
    } else if (p.extra_keywords) {
      keywords.push_back(key), values.push_back(args[nargs + k]);
    } else {
      return false;
    }
  }
  for (size_t i = 0; i < p.names.size(); ++i) {
    if (values[i]) continue;
    if (!p.defaults[i]) return false;
    values[i] = p.defaults[i].ptr();
  }
  return true;
}

// ---- matching ---------------------------------------------------------------------------------------------------
namespace {
#ifdef Py_TPFLAGS_MANAGED_DICT
constexpr unsigned long kManagedDict = Py_TPFLAGS_MANAGED_DICT;
#else
constexpr unsigned long kManagedDict = 0;
#endif

struct Spare {
  std::vector<PyObject*> values, arrays, objects, held;
  std::vector<int64_t> integers, key;
  std::vector<double> reals;
  std::vector<const Tensor*> operands;
};
thread_local Spare spare_of_thread;

void exchange(Match& m) {
  Spare& spare = spare_of_thread;
  m.arrays.swap(spare.arrays), m.objects.swap(spare.objects), m.held.swap(spare.held);
  m.integers.swap(spare.integers), m.reals.swap(spare.reals), m.key.swap(spare.key);
  m.operands.swap(spare.operands);
}

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

bool same_value(PyObject* a, PyObject* b);

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

// Equal values of one type, bit by bit: 1, 1.0 and True are different, and 0.0 and -0.0. Runs no code of users.
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
  if (PyFrozenSet_CheckExact(a)) return same_elements(a, b);
  return is_number(a) && same_memory(a, b);
}

// A number of NumPy.
bool is_foreign_number(PyObject* o, DType dtype) {
  return is_number(o) && !PyLong_Check(o) && !PyFloat_CheckExact(o) && !PyComplex_CheckExact(o) &&
         own_dtype(o) == dtype;
}

class Matcher {
 public:
  Matcher(const Guards& guards, Match& match) : guards_(guards), match_(match) {}

  bool arguments(const std::vector<PyObject*>& values) {
    for (PyObject* const value : values)
      if (!part(value)) return false;
    return true;
  }

  bool captured() {
    std::vector<PyObject*>& at = match_.held;  // a reference by step
    at.reserve(guards_.steps.size());
    const size_t first = at.size();
    for (const Step& s : guards_.steps) {
      PyObject* const parent = s.parent < 0               ? nullptr
                               : s.kind == Step::argument ? match_.objects[size_t(s.parent)]
                                                          : at[first + size_t(s.parent)];
      PyObject* const found = follow(s, parent);
      if (!found) return false;
      at.push_back(found);
      if (s.exact && found != s.exact.ptr()) return false;
      if (s.same >= 0 && found != at[first + size_t(s.same)]) return false;
      if (s.input >= 0 && !array(size_t(s.input), found)) return false;
    }
    return true;
  }

  bool kept() {
    for (size_t i = 0; i < guards_.kept.size(); ++i)
      if (guards_.kept[i] && !array(i, guards_.kept[i].ptr())) return false;
    return true;
  }

  // Where the function writes to an input, no array is two inputs.
  bool distinct() {
    if (!guards_.writes) return true;
    std::vector<PyObject*> sorted = match_.arrays;
    std::ranges::sort(sorted);
    const auto same = [](PyObject* a, PyObject* b) { return a && a == b; };
    return std::ranges::adjacent_find(sorted, same) == sorted.end();
  }

 private:
  bool array(size_t input, PyObject* o) {
    PyObject*& place = match_.arrays[input];
    if (place) return place == o;  // the trace had one array here and there
    place = o;
    return is_array(o) && word_of(tensor_of(o)) == guards_.words[input];
  }

  // A new reference; nullptr: there is nothing.
  static PyObject* follow(const Step& s, PyObject* parent) {
    PyObject* found = nullptr;
    switch (s.kind) {
      case Step::constant: found = s.key.ptr(); break;
      case Step::argument: found = parent; break;
      case Step::attribute:
        found = PyObject_GetAttr(parent, s.key.ptr());
        if (!found) PyErr_Clear();
        return found;
      case Step::item:
        if (!PyDict_Check(parent)) return nullptr;
        found = PyDict_GetItemWithError(parent, s.key.ptr());
        if (!found) PyErr_Clear();
        break;
      case Step::element:
        if (PyList_Check(parent) && s.at < PyList_GET_SIZE(parent)) found = PyList_GET_ITEM(parent, s.at);
        if (PyTuple_Check(parent) && s.at < PyTuple_GET_SIZE(parent)) found = PyTuple_GET_ITEM(parent, s.at);
        break;
      case Step::cell: found = PyCell_Check(parent) ? PyCell_GET(parent) : nullptr; break;
    }
    return Py_XNewRef(found);
  }

  bool part(PyObject* o) {
    const Part& p = guards_.parts[next_++];
    switch (p.kind) {
      case Part::array: return array(p.n, o);
      case Part::real:
        if (p.what ? reinterpret_cast<PyObject*>(Py_TYPE(o)) != p.what.ptr()
                   : !PyFloat_CheckExact(o) && !is_foreign_number(o, kDefaultFloat))
          return false;
        match_.reals[p.n] = PyFloat_AsDouble(o);
        return match_.reals[p.n] != -1 || !PyErr_Occurred();
      case Part::integer: {
        if (p.what ? reinterpret_cast<PyObject*>(Py_TYPE(o)) != p.what.ptr()
                   : !PyLong_CheckExact(o) && !is_foreign_number(o, kDefaultInt))
          return false;
        const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(o));
        int overflow = 0;
        if (number) match_.integers[p.n] = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
        return number && !overflow;
      }
      case Part::value: return same_value(o, p.what.ptr());
      case Part::object:
      case Part::weak: return match_.objects[p.n] = o, o == p.address;
      case Part::sequence: return sequence(p, o);
      case Part::dict: return dict(p, o);
      case Part::fields: return fields(p, o);
    }
    return false;
  }

  bool sequence(const Part& p, PyObject* o) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != p.what.ptr() || PySequence_Fast_GET_SIZE(o) != Py_ssize_t(p.n))
      return false;
    // Fields of dataclasses run Python code, which may change a list: its length is read again.
    for (Py_ssize_t i = 0; i < Py_ssize_t(p.n); ++i)
      if (i >= PySequence_Fast_GET_SIZE(o) || !part(hold(Py_NewRef(PySequence_Fast_GET_ITEM(o, i))))) return false;
    return true;
  }

  bool dict(const Part& p, PyObject* o) {
    if (!PyDict_CheckExact(o) || PyDict_GET_SIZE(o) != Py_ssize_t(p.keys.size())) return false;
    std::vector<PyObject*> values;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    for (const py::object& expected : p.keys) {
      if (!PyDict_Next(o, &at, &key, &value) || !same_value(key, expected.ptr())) return false;
      values.push_back(hold(Py_NewRef(value)));
    }
    return std::ranges::all_of(values, [&](PyObject* v) { return part(v); });
  }

  bool fields(const Part& p, PyObject* o) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != p.what.ptr()) return false;
    for (const py::object& name : p.keys) {
      PyObject* const value = PyObject_GetAttr(o, name.ptr());
      if (!value) return PyErr_Clear(), false;
      if (!part(hold(value))) return false;
    }
    return true;
  }

  PyObject* hold(PyObject* reference) { return match_.held.push_back(reference), reference; }

  const Guards& guards_;
  Match& match_;
  size_t next_ = 0;
};
}  // namespace

BoundArguments::BoundArguments() { values.swap(spare_of_thread.values); }
BoundArguments::~BoundArguments() { values.swap(spare_of_thread.values); }
Match::Match() { exchange(*this); }
Match::~Match() {
  clear(0, 0, 0);
  exchange(*this);
}

void Match::clear(size_t n_inputs, size_t n_arguments, size_t n_objects) {
  while (!held.empty()) {
    PyObject* const o = held.back();
    held.pop_back();
    Py_DECREF(o);
  }
  arrays.assign(n_inputs, nullptr), objects.assign(n_objects, nullptr);
  integers.assign(n_arguments, 0), reals.assign(n_arguments, 0);
}

bool Guards::match(const BoundArguments& given, Match& m) const {
  if (given.n_extra != n_extra || given.keywords.size() != keywords.size()) return false;
  for (size_t i = 0; i < keywords.size(); ++i)
    if (!same_value(given.keywords[i], keywords[i].ptr())) return false;
  m.clear(words.size(), n_arguments, n_objects);
  Matcher matcher(*this, m);
  return matcher.arguments(given.values) && matcher.captured() && matcher.kept() && matcher.distinct();
}

bool Guards::still_match(const Match& m) const {
  for (size_t i = 0; i < words.size(); ++i)
    if (m.arrays[i] && !has_elements(m.arrays[i])) return false;
  return true;
}

int Guards::visit(visitproc visit, void* arg) const {
  for (const Part& p : parts) {
    Py_VISIT(p.what.ptr());
    for (const py::object& key : p.keys) Py_VISIT(key.ptr());
  }
  for (const Step& s : steps) {
    Py_VISIT(s.key.ptr());
    Py_VISIT(s.exact.ptr());
  }
  for (const py::object& array : kept) Py_VISIT(array.ptr());
  return 0;
}
}  // namespace dovetail::bindings
