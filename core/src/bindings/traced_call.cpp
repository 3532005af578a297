// Calls in traces that need no Python code: of arrays and numbers, with attributes that are plain or numbers of the
// trace. FunctionGraph of dovetail._record does the same for every call, and is asked for those that differ.
#include "bindings/autocast.hpp"
#include "bindings/recorder.hpp"
#include "bindings/tracing.hpp"

namespace dovetail::bindings {
namespace {
py::object attribute(PyObject* o, PyObject* name) {
  PyObject* const found = PyObject_GetAttr(o, name);
  if (!found) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(found);
}
int integer(const py::object& o) { return int(PyLong_AsLong(o.ptr())); }

// The classes of dovetail and the names of their attributes.
struct Classes {
  PyTypeObject* tracer = type("_tracer", "ArrayTracer");
  PyTypeObject* number = type("schema.number", "Number");
  PyObject *graph = name("_graph"), *id = name("_id"), *shape = name("_shape"), *dtype = name("_dtype"),
           *joins = name("_joins"), *table = name("table"), *entry = name("entry"), *value = name("value"),
           *builder = name("builder"), *outer = name("outer");

  static PyTypeObject* type(const char* module, const char* name) {
    return reinterpret_cast<PyTypeObject*>(lazy(module, name).release().ptr());
  }
  static PyObject* name(const char* text) { return PyUnicode_InternFromString(text); }
};
const Classes& classes() {
  static const Classes& found = *new Classes;
  return found;
}

bool is_plain(PyObject* o) {
  return o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
         PyUnicode_CheckExact(o);
}

// One call, as far as it is plain.
class TracedCall {
 public:
  TracedCall(PyObject* graph, const Op& op) : graph_(graph), op_(op) {}

  // Whether this is a graph of a function, not one within it, which has a builder as long as it is traced.
  bool has_builder() {
    if (attribute(graph_, names_.outer).ptr() != Py_None) return false;
    keep_.push_back(attribute(graph_, names_.builder));
    if (!py::isinstance<ProgramBuilder>(keep_.back())) return false;
    builder_ = keep_.back().cast<ProgramBuilder*>();
    return true;
  }

  // `at`: an object for each parameter; nullptr: its default.
  bool take(PyObject* const* at) {
    int attr = 0;
    for (size_t i = 0; i < op_.spec.params.size(); ++i) {
      const ParamSpec& p = op_.spec.params[i];
      if (is_operand(p.kind)) {
        if (!take_operand(at[i])) return false;
      } else if (!at[i]) {
        if (p.fallback.kind == AttrDefault::required) return false;
        ++attr;
      } else if (!take_attribute(p, attr++, at[i])) {
        return false;
      }
    }
    const bool checked = (op_.spec.flags & op_integer_exponent) && operands_[1].number;
    return !arrays_.empty() && !checked;
  }

  py::object record() {
    builder_->at(user_line());
    const int first = record_node(*builder_, op_, operands_, attrs_, std::move(slots_));
    if (op_.spec.n_out == 1) return tracer(first);
    py::tuple all(op_.spec.n_out);
    for (uint32_t k = 0; k < op_.spec.n_out; ++k) all[k] = tracer(first + int(k));
    return all;
  }

 private:
  bool take_operand(PyObject* x) {
    if (!x || x == Py_None) {
      operands_.emplace_back();
      return is_optional(op_, int(operands_.size()) - 1);
    }
    if (Py_IS_TYPE(x, names_.number)) {
      const std::optional<int> entry = entry_of(x);
      if (!entry) return false;
      keep_.push_back(attribute(x, names_.value));
      operands_.push_back({.number = keep_.back().ptr(), .entry = *entry});
      return true;
    }
    if (!Py_IS_TYPE(x, names_.tracer) && !is_array(x)) {
      operands_.push_back({.number = x});
      return PyBool_Check(x) || PyLong_CheckExact(x) || PyFloat_CheckExact(x);
    }
    py::object tracer = py::reinterpret_borrow<py::object>(x);
    if (is_array(x)) tracer = py::handle(graph_).attr("value")(tracer);
    if (attribute(tracer.ptr(), names_.graph).ptr() != graph_) return false;
    operands_.push_back({.value = integer(attribute(tracer.ptr(), names_.id))});
    arrays_.push_back(std::move(tracer));
    return true;
  }

  bool take_attribute(const ParamSpec& p, int i, PyObject* x) {
    if (PyTuple_CheckExact(x) || PyList_CheckExact(x)) return take_list(p, i, x);
    if (Py_IS_TYPE(x, names_.number)) {
      const std::optional<int> entry = entry_of(x);
      if (!entry) return false;
      keep_.push_back(attribute(x, names_.value));
      set_attr(op_, attrs_, i, p, keep_.back().ptr());
      const bool is_list = attrs_.at[i].kind == DVT_A_I64S;  // one number may stand for a list of one
      slots_.push_back({uint8_t(i), int16_t(is_list ? 0 : -1), *entry});
      return true;
    }
    if (!is_plain(x) && p.kind != ParamKind::dtype) return false;
    set_attr(op_, attrs_, i, p, x);
    return true;
  }

  bool take_list(const ParamSpec& p, int i, PyObject* list) {
    if (p.kind != ParamKind::i64s) return false;
    const auto n = size_t(PySequence_Fast_GET_SIZE(list));
    py::tuple values(n);
    for (size_t k = 0; k < n; ++k) {
      PyObject* const x = PySequence_Fast_GET_ITEM(list, Py_ssize_t(k));
      if (Py_IS_TYPE(x, names_.number)) {
        const std::optional<int> entry = entry_of(x);
        if (!entry) return false;
        slots_.push_back({uint8_t(i), int16_t(k), *entry});
        values[k] = attribute(x, names_.value);
      } else if (PyLong_CheckExact(x)) {
        values[k] = py::reinterpret_borrow<py::object>(x);
      } else {
        return false;
      }
    }
    set_attr(op_, attrs_, i, p, values.ptr());
    return true;
  }

  // Of a number of this graph, in the builder's table.
  std::optional<int> entry_of(PyObject* number) {
    if (attribute(number, names_.table).ptr() != graph_) return std::nullopt;
    return integer(attribute(number, names_.entry));
  }

  // Made as by Tracer.__init__, with the operands from which its sizes follow.
  py::object tracer(int value) {
    const auto made = py::reinterpret_steal<py::object>(names_.tracer->tp_alloc(names_.tracer, 0));
    if (!made) throw py::error_already_set();
    const auto set = [&](PyObject* name, py::handle to) {
      if (PyObject_GenericSetAttr(made.ptr(), name, to.ptr()) < 0) throw py::error_already_set();
    };
    py::tuple joins(op_.spec.shape == "same" ? 1 : op_.spec.shape == "broadcast" ? arrays_.size() : 0);
    for (size_t i = 0; i < joins.size(); ++i) joins[i] = arrays_[i];
    set(names_.graph, graph_);
    set(names_.id, py::int_(value));
    set(names_.dtype, py::none());
    set(names_.shape, py::none());
    set(names_.joins, joins);
    return made;
  }

  const Classes& names_ = classes();
  PyObject* graph_;
  const Op& op_;
  ProgramBuilder* builder_ = nullptr;
  std::vector<RecordedOperand> operands_;
  std::vector<py::object> arrays_, keep_;  // the operands that are arrays; what operands and attributes point to
  Attrs attrs_ = op_.defaults;
  std::vector<Program::Slot> slots_;
};
}  // namespace

std::string user_line() {
  static PyObject* const is_internal = lazy("_record", "is_internal").release().ptr();
  static PyObject* const known = PyDict_New();  // by file
  auto frame = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* const f = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
    PyObject* const file = reinterpret_cast<PyCodeObject*>(code.ptr())->co_filename;
    PyObject* internal = PyDict_GetItemWithError(known, file);
    if (!internal) {
      internal = py::handle(is_internal)(py::handle(file)).release().ptr();
      PyDict_SetItem(known, file, internal);
    }
    if (internal != Py_True) return utf8(file) + ":" + std::to_string(PyFrame_GetLineNumber(f));
    frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return "";
}

PyObject* record_plain(PyObject* graph, const Op& op, PyObject* const* at) try {
  if (op.variadic || (op.spec.flags & op_control)) return nullptr;
  if (autocast_used && (op.spec.flags & op_autocast)) return nullptr;
  TracedCall call(graph, op);
  return call.has_builder() && call.take(at) ? call.record().release().ptr() : nullptr;
} catch (...) {  // FunctionGraph raises it, too, and makes the program one for just these sizes and numbers
  return nullptr;
}
}  // namespace dovetail::bindings
