#include "bindings/compiled_match.hpp"

#include <algorithm>
#include <bit>

#include "bindings/plain_value.hpp"

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
struct Spare {
  std::vector<PyObject*> values, arrays, objects, held, table;
  std::vector<int64_t> integers, key;
  std::vector<double> reals;
  std::vector<const Tensor*> operands;
};
thread_local Spare spare_of_thread;

void exchange(Match& m) {
  Spare& spare = spare_of_thread;
  m.arrays.swap(spare.arrays), m.objects.swap(spare.objects), m.held.swap(spare.held);
  m.integers.swap(spare.integers), m.reals.swap(spare.reals), m.key.swap(spare.key);
  m.operands.swap(spare.operands), m.table.swap(spare.table);
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

  bool captured(int* failed) {
    std::vector<PyObject*>& at = match_.held;  // a reference by step
    at.reserve(at.size() + guards_.steps.size());
    const size_t first = at.size();
    for (const Step& s : guards_.steps) {
      PyObject* const parent = s.parent < 0                  ? nullptr
                               : s.hop.kind == Hop::argument ? match_.objects[size_t(s.parent)]
                                                             : at[first + size_t(s.parent)];
      PyObject* const found = s.hop.follow(parent);
      if (found) at.push_back(found);
      if (found && s.expected.holds(found) && (s.same < 0 || found == at[first + size_t(s.same)]) &&
          (s.input < 0 || array(size_t(s.input), found)))
        continue;
      if (failed) *failed = int(&s - guards_.steps.data());
      return false;
    }
    return true;
  }

  bool kept() {
    for (size_t i = 0; i < guards_.kept.size(); ++i)
      if (guards_.kept[i] && !array(i, guards_.kept[i].ptr())) return false;
    return true;
  }

  // No array is two inputs: what is written to one would be seen in the other, and `x is y` was false.
  bool distinct() const {
    const std::vector<PyObject*>& arrays = match_.arrays;
    if (arrays.size() <= 8) {
      for (auto at = arrays.begin(); at != arrays.end(); ++at)
        if (*at && std::find(arrays.begin(), at, *at) != at) return false;
      return true;
    }
    std::vector<PyObject*>& table = match_.table;  // open addressing, at most half full
    table.assign(std::bit_ceil(2 * arrays.size()), nullptr);
    for (PyObject* const o : arrays) {
      if (!o) continue;
      size_t at = (reinterpret_cast<uintptr_t>(o) * 0x9E3779B97F4A7C15u) >> 32;
      for (at &= table.size() - 1; table[at]; at = (at + 1) & (table.size() - 1))
        if (table[at] == o) return false;
      table[at] = o;
    }
    return true;
  }

 private:
  bool array(size_t input, PyObject* o) {
    PyObject*& place = match_.arrays[input];
    if (place) return place == o;  // the trace had one array here and there
    place = o;
    return is_array(o) && word_of(tensor_of(o)) == guards_.words[input];
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
      case Part::object: return match_.objects[p.n] = o, o == target(p.what.ptr());
      case Part::owner: return match_.objects[p.n] = o, o == p.address;
      case Part::sequence: return sequence(p, o);
      case Part::dict: return dict(p, o);
      case Part::fields: return fields(p, o);
    }
    return false;
  }

  bool sequence(const Part& p, PyObject* o) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != p.what.ptr() || PySequence_Fast_GET_SIZE(o) != Py_ssize_t(p.n))
      return false;
    for (Py_ssize_t i = 0; i < Py_ssize_t(p.n); ++i)
      if (!part(hold(Py_NewRef(PySequence_Fast_GET_ITEM(o, i))))) return false;
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
    PyObject** const dict = _PyObject_GetDictPtr(o);
    if ((dict && *dict ? PyDict_GET_SIZE(*dict) : 0) != Py_ssize_t(p.n)) return false;
    for (const Hop& hop : p.hops) {
      PyObject* const value = hop.follow(o);
      if (!value || !part(hold(value))) return false;
    }
    return true;
  }

  // Of a weak reference: what it leads to; nullptr: it is gone.
  static PyObject* target(PyObject* o) {
    if (!PyWeakref_Check(o)) return o;
#if PY_VERSION_HEX >= 0x030D0000
    PyObject* found = nullptr;
    if (PyWeakref_GetRef(o, &found) == 1) Py_DECREF(found);  // the caller's arguments hold it
    return found;
#else
    return PyWeakref_GET_OBJECT(o);
#endif
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

bool Guards::match(const BoundArguments& given, Match& m, int* failed) const {
  if (given.n_extra != n_extra || given.keywords.size() != keywords.size()) return false;
  for (size_t i = 0; i < keywords.size(); ++i)
    if (!same_value(given.keywords[i], keywords[i].ptr())) return false;
  m.clear(words.size(), n_arguments, n_objects);
  Matcher matcher(*this, m);
  return matcher.arguments(given.values) && matcher.captured(failed) && matcher.kept() && matcher.distinct();
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
    for (const Hop& hop : p.hops) Py_VISIT(hop.key.ptr());
  }
  for (const Step& s : steps) {
    Py_VISIT(s.hop.key.ptr());
    Py_VISIT(s.expected.what.ptr());
    Py_VISIT(s.expected.keys.ptr());
  }
  for (const py::object& array : kept) Py_VISIT(array.ptr());
  return 0;
}
}  // namespace dovetail::bindings
