#include "bindings/compiled_match.hpp"

#include <algorithm>
#include <utility>

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
  const int n_named = int(p.names.size());
  if (kwnames || nargs < n_named || n_named != p.n_positional) return bind_by_name(p, args, nargs, kwnames);
  values = {args, size_t(nargs)}, n_extra = nargs - n_named;
  return !n_extra || p.extra_positional;
}

bool BoundArguments::bind_by_name(const Parameters& p, PyObject* const* args, int nargs, PyObject* kwnames) {
  std::vector<PyObject*>& all = *ordered_;
  all.assign(p.names.size(), nullptr);
  const int n_named = std::min(nargs, p.n_positional);
  std::copy_n(args, n_named, all.begin());
  if (nargs > n_named) {
    if (!p.extra_positional) return false;
    all.insert(all.end(), args + n_named, args + nargs);
    n_extra = nargs - n_named;
  }
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    PyObject* const key = PyTuple_GET_ITEM(kwnames, k);
    const int i = position(p, key);
    if (i >= 0) {
      if (all[size_t(i)]) return false;
      all[size_t(i)] = args[nargs + k];
    } else if (p.extra_keywords) {
      keywords.push_back(key), all.push_back(args[nargs + k]);
    } else {
      return false;
    }
  }
  for (size_t i = 0; i < p.names.size(); ++i) {
    if (all[i]) continue;
    if (!p.defaults[i]) return false;
    all[i] = p.defaults[i].ptr();
  }
  values = all;
  return true;
}

void BoundArguments::set(const py::tuple& given, int n, const py::tuple& names) {
  ordered_->clear();
  for (const py::handle v : given) ordered_->push_back(v.ptr());
  for (const py::handle k : names) keywords.push_back(k.ptr());
  values = *ordered_, n_extra = n;
}

// ---- matching ---------------------------------------------------------------------------------------------------
namespace {
uint64_t n_matches = 0;  // guarded by the GIL

// A number of NumPy.
bool is_foreign_number(PyObject* o, DType dtype) {
  return is_number(o) && !PyLong_Check(o) && !PyFloat_CheckExact(o) && !PyComplex_CheckExact(o) &&
         own_dtype(o) == dtype;
}

class Matcher {
 public:
  Matcher(const Guards& guards, Match& match) : guards_(guards), match_(match), id_(++n_matches) {}

  bool arguments(std::span<PyObject* const> values) {
    for (PyObject* const value : values) {
      const Part& p = guards_.parts[next_];
      if (p.kind == Part::array ? ++next_, !array(p.n, value) : !part(value)) return false;
    }
    return true;
  }

  bool captured(int* failed) {
    const size_t first = match_.held.size(), n = guards_.steps.size();
    match_.held.resize(first + n);
    PyObject** const at = match_.held.data() + first;
    for (size_t i = 0; i < n; ++i) {
      const Step& s = guards_.steps[i];
      PyObject* const parent = s.parent < 0                  ? nullptr
                               : s.hop.kind == Hop::argument ? match_.objects[size_t(s.parent)]
                                                             : at[s.parent];
      PyObject* const found = at[i] = s.hop.follow(parent);
      if (found && s.expected.holds(found) && (s.same < 0 || found == at[s.same]) &&
          (s.input < 0 || array(size_t(s.input), found)))
        continue;
      if (failed) *failed = int(i);
      return false;
    }
    return true;
  }

  bool kept() {
    for (const auto& [input, kept] : guards_.kept)
      if (!array(input, kept.ptr())) return false;
    return true;
  }

 private:
  bool array(size_t input, PyObject* o) {
    PyObject*& place = match_.arrays[input];
    if (place) return place == o;  // the trace had one array here and there
    place = o;
    if (!is_array(o) || word_of(tensor_of(o)) != guards_.words[input]) return false;
    match_.operands[input] = &tensor_of(o);
    // No array is two inputs: what is written to one would be seen in the other, and `x is y` was false.
    return std::exchange(array_of(o).met, id_) != id_;
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

  PyObject* hold(PyObject* reference) { return match_.held.push_back(reference), reference; }

  const Guards& guards_;
  Match& match_;
  const uint64_t id_;
  size_t next_ = 0;
};
}  // namespace

void Match::clear() {
  while (!held.empty()) {
    PyObject* const o = held.back();
    held.pop_back();
    Py_XDECREF(o);
  }
}

void Match::clear(size_t n_inputs, size_t n_arguments, size_t n_objects) {
  clear();
  arrays.assign(n_inputs, nullptr), operands.resize(n_inputs), objects.assign(n_objects, nullptr);
  integers.assign(n_arguments, 0), reals.assign(n_arguments, 0);
}

bool Guards::match(const BoundArguments& given, Match& m, int* failed) const {
  if (given.n_extra != n_extra || given.keywords.size() != keywords.size()) return false;
  for (size_t i = 0; i < keywords.size(); ++i)
    if (!same_value(given.keywords[i], keywords[i].ptr())) return false;
  m.clear(words.size(), n_arguments, n_objects);
  Matcher matcher(*this, m);
  return matcher.arguments(given.values) && matcher.captured(failed) && matcher.kept();
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
  for (const auto& [input, array] : kept) Py_VISIT(array.ptr());
  return 0;
}
}  // namespace dovetail::bindings
