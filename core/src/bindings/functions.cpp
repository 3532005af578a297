// Op objects: `dovetail.add` and every other op, built in or registered later, is one callable type whose signature
// is data. No wrapper is written or generated per op.
#include <pybind11/stl.h>

#include "bindings/recorder.hpp"

namespace dovetail::bindings {
namespace {
constexpr int kMaxParams = kMaxInputs + kMaxAttrs;

struct PyOp {
  PyObject_HEAD vectorcallfunc vectorcall;
  const Op* op;
  int n_positional;
  PyObject* names[kMaxParams];  // interned, as the names at call sites are
};
PyTypeObject* op_type;

// The arguments of one call: a borrowed object per parameter, and the device of an op that may have no operands.
struct Bound {
  PyObject* at[kMaxParams] = {};
  PyObject* device = nullptr;
};

// The signature for messages: "softmax(x, axis=-1)".
std::string call_form(const PyOp& self) {
  const std::vector<ParamSpec>& params = self.op->spec.params;
  std::string text = self.op->spec.name + "(";
  bool operands = false;
  for (size_t i = 0; i < params.size(); ++i) {
    text += i ? ", " : "";
    if (int(i) == self.n_positional) text += "*, ";
    text += params[i].name;
    if (params[i].optional) text += "=None";
    else if (params[i].fallback.kind != AttrDefault::required)
      text += "=" + utf8(py::repr(default_object(params[i].fallback)).ptr());
    operands |= is_operand(params[i].kind);
  }
  if (operands) return text + ")";
  return text + (int(params.size()) == self.n_positional ? ", *, device=None)" : ", device=None)");
}

// The format takes the op's name, the wrong name, and the signature.
[[gnu::cold]] bool refuse(const PyOp& self, const char* format, PyObject* what) {
  PyErr_Format(PyExc_TypeError, format, self.op->spec.name.c_str(), what, call_form(self).c_str());
  return false;
}

int position(const PyOp& self, PyObject* key, int n) {
  for (int i = 0; i < n; ++i)
    if (self.names[i] == key) return i;
  for (int i = 0; i < n; ++i)  // a name made at run time is not interned
    if (PyUnicode_Compare(self.names[i], key) == 0) return i;
  return -1;
}

bool bind(const PyOp& self, PyObject* const* args, int nargs, PyObject* kwnames, Bound& bound) {
  const std::vector<ParamSpec>& params = self.op->spec.params;
  const int n = int(params.size()), n_keywords = kwnames ? int(PyTuple_GET_SIZE(kwnames)) : 0;
  if (nargs > self.n_positional) [[unlikely]] {
    PyErr_Format(PyExc_TypeError, "[%s] takes %d positional argument%s, got %d: expected %s",
                 self.op->spec.name.c_str(), self.n_positional, self.n_positional == 1 ? "" : "s", nargs,
                 call_form(self).c_str());
    return false;
  }
  for (int i = 0; i < nargs; ++i) bound.at[i] = args[i];
  for (int k = 0; k < n_keywords; ++k) {
    PyObject* key = PyTuple_GET_ITEM(kwnames, k);
    const int i = position(self, key, n);
    if (i < 0) {
      if (PyUnicode_CompareWithASCIIString(key, "device") != 0)
        return refuse(self, "[%s] got an unexpected keyword argument '%U': expected %s", key);
      bound.device = args[nargs + k];
      continue;
    }
    if (bound.at[i]) return refuse(self, "[%s] got two values for '%U': expected %s", key);
    bound.at[i] = args[nargs + k];
  }
  for (int i = 0; i < n; ++i)
    if (!bound.at[i] &&
        (is_operand(params[i].kind) ? !params[i].optional : params[i].fallback.kind == AttrDefault::required))
      return refuse(self, "[%s] misses the argument '%U': expected %s", self.names[i]);
  return true;
}

}  // namespace

PyObject* refuse_operand(const Op& op, PyObject* o) {
  if (o == Py_None) return PyErr_Format(PyExc_TypeError, "[%s] expected an array, got None", op.spec.name.c_str());
  return PyErr_Format(PyExc_TypeError,
                      "[%s] expected dovetail arrays or Python numbers, got %s: dovetail.asarray() makes an array",
                      op.spec.name.c_str(), Py_TYPE(o)->tp_name);
}

namespace {
// Passes the call to an operand that defines __dovetail_op__: tracers, symbolic values, other libraries' arrays.
PyObject* divert(PyObject* self, PyObject* const* args, int nargs, PyObject* kwnames, PyObject* const* operands,
                 int n) {
  static PyObject* const hook = PyUnicode_InternFromString("__dovetail_op__");
  const Op& op = *reinterpret_cast<PyOp*>(self)->op;
  for (int i = 0; i < n; ++i) {
    PyObject* o = operands[i];
    if (!o || is_array(o) || !PyObject_HasAttr(reinterpret_cast<PyObject*>(Py_TYPE(o)), hook)) continue;
    const int total = nargs + (kwnames ? int(PyTuple_GET_SIZE(kwnames)) : 0);
    std::vector<PyObject*> passed{o, self};
    passed.insert(passed.end(), args, args + total);
    return PyObject_VectorcallMethod(hook, passed.data(), size_t(nargs) + 2, kwnames);
  }
  for (int i = 0; i < n; ++i) {
    PyObject* o = operands[i];
    if (!o || is_array(o) || is_number(o) || (o == Py_None && is_optional(op, i))) continue;
    return refuse_operand(op, o);
  }
  return PyErr_Format(PyExc_TypeError, "[%s] expected at least one array: dovetail.asarray() makes one of a number",
                      op.spec.name.c_str());
}

// The arrays of a variadic operand: any sequence.
bool spread(const Op& op, PyObject* sequence, std::vector<PyObject*>& operands, py::object& keep) {
  if (!Py_TYPE(sequence)->tp_iter && !PySequence_Check(sequence)) {
    PyErr_Format(PyExc_TypeError, "[%s] expected a sequence of arrays, got %s", op.spec.name.c_str(),
                 Py_TYPE(sequence)->tp_name);
    return false;
  }
  // A tuple, because other Python code may change a list before the call is done.
  keep = py::reinterpret_steal<py::object>(PySequence_Tuple(sequence));
  if (!keep) return false;
  PyObject** items = reinterpret_cast<PyTupleObject*>(keep.ptr())->ob_item;
  operands.assign(items, items + PyTuple_GET_SIZE(keep.ptr()));
  if (operands.empty())
    PyErr_Format(PyExc_ValueError, "[%s] expected at least one array, got an empty sequence", op.spec.name.c_str());
  return !operands.empty();
}

// Sets the exception being handled, with the op's name in front where the message has none.
void set_error_of(const Op& op) {
  try {
    try {
      throw;
    } catch (const Error& e) {
      if (e.what()[0] == '[') throw;
      throw Error(e.kind, "[" + op.spec.name + "] " + e.what());
    }
  } catch (...) {
    set_python_error();
  }
}

// Bound arguments in the form that the runtime takes.
struct Arguments {
  Attrs attrs;
  PyObject* few[kMaxInputs];
  int n = 0;
  Device* device = nullptr;
  std::vector<PyObject*> many;
  py::object keep;
  PyObject* const* operands = few;

  // Returns false with an exception set.
  bool take(const Op& op, const Bound& bound) try {
    int attr = 0;
    for (size_t i = 0; i < op.spec.params.size(); ++i) {
      const ParamSpec& p = op.spec.params[i];
      if (p.variadic) {
        if (!spread(op, bound.at[i], many, keep)) return false;
        operands = many.data(), n = int(many.size());
      } else if (is_operand(p.kind)) {
        few[n++] = bound.at[i];
      } else {
        if (bound.at[i]) set_attr(op, attrs, attr, p, bound.at[i]);
        else attrs.at[attr] = op.defaults.at[attr];
        ++attr;
      }
    }
    if (bound.device && n > 0 && bound.device != Py_None)
      throw Error(ErrorKind::type, "[" + op.spec.name + "] takes no device: it runs where its arrays are");
    if (n == 0) device = &to_device(bound.device ? bound.device : Py_None);
    return true;
  } catch (...) {
    set_error_of(op);
    return false;
  }
};

PyObject* call_op(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const PyOp& self = *reinterpret_cast<PyOp*>(object);
  const int nargs = int(PyVectorcall_NARGS(nargsf));
  Bound bound;
  Arguments given;
  if (!bind(self, args, nargs, kwnames, bound)) return nullptr;
  if (PyObject* const trace = recorder()) [[unlikely]] {
    PyObject* const made = bound.device ? nullptr : record_plain(trace, *self.op, bound.at);
    return made || PyErr_Occurred() ? made : record_call(trace, object, args, nargs, kwnames);
  }
  if (!given.take(*self.op, bound)) return nullptr;
  PyObject* out = call(*self.op, given.operands, given.n, given.attrs, given.device, nullptr);
  return out || PyErr_Occurred() ? out : divert(object, args, nargs, kwnames, given.operands, given.n);
}

// answer(op, arguments) for the arguments of a Python call.
template <class Answer>
auto bound(const py::object& function, const py::args& args, const py::kwargs& kwargs, Answer answer) {
  if (!op_of(function.ptr())) throw Error(ErrorKind::type, "expected an op, got " + shown(function.ptr()));
  const PyOp& self = *reinterpret_cast<PyOp*>(function.ptr());
  std::vector<PyObject*> given;
  for (const py::handle value : args) given.push_back(value.ptr());
  py::list names;
  for (const auto& [name, value] : kwargs) names.append(name), given.push_back(value.ptr());
  Bound bound;
  Arguments arguments;
  if (!bind(self, given.data(), int(args.size()), py::tuple(names).ptr(), bound) ||
      !arguments.take(*self.op, bound))
    throw py::error_already_set();
  return answer(*self.op, arguments);
}

std::vector<std::string> serving(const py::object& function, const py::args& args, const py::kwargs& kwargs) {
  return bound(function, args, kwargs,
               [](const Op& op, Arguments& a) { return engines_of_call(op, a.operands, a.n, a.attrs); });
}

std::string missing(const py::object& function, const py::args& args, const py::kwargs& kwargs) {
  return bound(function, args, kwargs,
               [](const Op& op, Arguments& a) { return missing_for_call(op, a.operands, a.n, a.attrs, a.device); });
}

std::vector<std::string> decomposed(const py::object& function, const py::args& args, const py::kwargs& kwargs) {
  return bound(function, args, kwargs, [](const Op& op, Arguments& a) {
    return decomposition_of_call(op, a.operands, a.n, a.attrs, a.device);
  });
}

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<op %s>", reinterpret_cast<PyOp*>(self)->op->spec.name.c_str());
}
PyObject* get_name(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<PyOp*>(self)->op->spec.name.c_str());
}
// The signature goes first, because help() shows none for an object that is not a function.
PyObject* get_doc(PyObject* self, void*) {
  try {
    const PyOp& op = *reinterpret_cast<PyOp*>(self);
    const py::str text(lazy("_signature", "doc")(op.op->spec.name, op.op->spec.doc));
    return str_of(call_form(op) + "\n\n" + std::string(text)).release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

// Made at first use from the schema, because importing inspect takes longer than importing dovetail.
PyObject* get_signature(PyObject* self, void*) {
  PyObject* module = PyImport_ImportModule("dovetail._signature");
  if (!module) return nullptr;
  PyObject* signature =
      PyObject_CallMethod(module, "signature", "s", reinterpret_cast<PyOp*>(self)->op->spec.name.c_str());
  Py_DECREF(module);
  return signature;
}

PyObject* reduce(PyObject* self, PyObject*) {
  try {
    const std::string& name = reinterpret_cast<PyOp*>(self)->op->spec.name;
    return py::make_tuple(lazy("_array", "unpickled_op"), py::make_tuple(name)).release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(PyOp, vectorcall), READONLY, nullptr}, {}};
PyGetSetDef getters[] = {{"__name__", get_name, nullptr, nullptr, nullptr},
                         {"__doc__", get_doc, nullptr, nullptr, nullptr},
                         {"__signature__", get_signature, nullptr, nullptr, nullptr},
                         {}};
PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_members, members},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getters},
                       {Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {}};
PyType_Spec spec{"dovetail.Op", sizeof(PyOp), 0,
                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
}  // namespace

void make_op_type(py::module_& m) {
  op_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(m.ptr(), &spec, nullptr));
  if (!op_type) throw py::error_already_set();
  m.attr("Op") = py::handle(reinterpret_cast<PyObject*>(op_type));
  m.def("serving_engines", serving,
        "The engines that can serve this call of an op, in the order in which they are tried.");
  m.def("decomposition_ops", decomposed,
        "The names of the ops that the decomposition of this call of an op calls.");
  m.def("missing_kernel", missing,
        "Why this call of an op does not run on its device alone, naming the kernel that is missing; \"\" where it "
        "does. Nothing runs.");
}

py::object op_function(const Op& op) {  // lives as long as the process
  static auto& functions = *new std::vector<PyOp*>;
  if (functions.size() <= size_t(op.id)) functions.resize(op.id + 1);
  PyOp*& self = functions[op.id];
  if (!self) {
    self = PyObject_New(PyOp, op_type);
    if (!self) throw py::error_already_set();
    self->vectorcall = call_op;
    self->op = &op;
    self->n_positional = 0;
    int i = 0;
    for (const ParamSpec& p : op.spec.params) {
      self->names[i++] = PyUnicode_InternFromString(p.name.c_str());
      if (!p.keyword_only) self->n_positional = i;
    }
  }
  return py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(self));
}

const Op* op_of(PyObject* function) {
  return Py_IS_TYPE(function, op_type) ? reinterpret_cast<PyOp*>(function)->op : nullptr;
}
}  // namespace dovetail::bindings
