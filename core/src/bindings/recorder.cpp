#include "bindings/recorder.hpp"

#include <algorithm>
#include <utility>

namespace dovetail::bindings {
namespace {
thread_local PyObject* own = nullptr;

// Returns the recorder that was set before, for the caller to set again.
py::object set_recorder(const py::object& next) {
  const auto before = py::reinterpret_steal<py::object>(own);
  own = next.is_none() ? nullptr : next.inc_ref().ptr();
  recorders += int(own != nullptr) - int(before.ptr() != nullptr);
  return before ? before : py::none();
}

// A context manager that is not written in Python: the interpreter runs no signal handler between its functions and
// the code within, so that Ctrl-C leaves no recorder behind.
class RecordingOn {
 public:
  explicit RecordingOn(py::object next) : next_(std::move(next)) {}
  void enter() { before_ = set_recorder(next_); }
  void exit(const py::args&) { set_recorder(std::exchange(before_, py::none())); }

 private:
  py::object next_, before_ = py::none();
};
}  // namespace

PyObject* recorder_of_thread() { return own; }

void ask_to_read(PyObject* recorder, PyObject* array, const char* what) {
  py::handle(recorder).attr("read")(py::handle(array), what);
}

PyObject* ask_about(PyObject* recorder, PyObject* array, const char* name) try {
  return py::handle(recorder).attr("about")(py::handle(array), name).release().ptr();
} catch (...) {
  set_python_error();
  return nullptr;
}

PyObject* record_call(PyObject* recorder, PyObject* function, PyObject* const* args, int nargs, PyObject* kwnames) {
  static PyObject* const hook = PyUnicode_InternFromString("__dovetail_op__");
  std::vector<PyObject*> passed{recorder, function};
  passed.insert(passed.end(), args, args + nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0));
  return PyObject_VectorcallMethod(hook, passed.data(), size_t(nargs) + 2, kwnames);
}

PyObject* record_operator(PyObject* recorder, const Op& op, PyObject* const* operands, int n, bool in_place) try {
  PyObject* at[kMaxInputs + kMaxAttrs] = {};
  std::copy_n(operands, n, at);
  if (PyObject* const made = in_place ? nullptr : record_plain(recorder, op, at)) return made;
  if (PyErr_Occurred()) return nullptr;
  py::tuple given(n);
  for (int i = 0; i < n; ++i) given[i] = py::reinterpret_borrow<py::object>(operands[i]);
  return py::handle(recorder).attr("operator")(op_function(op), given, in_place).release().ptr();
} catch (...) {
  set_python_error();
  return nullptr;
}

void make_recorder(py::module_& m) {
  m.def("user_line", [] { return str_of(user_line()); }, "file:line of the innermost frame outside of dovetail.");
  m.def(
      "record_plain",
      [](const py::object& recorder, const std::string& name, const py::tuple& args) {
        const Op& called = op(name);
        PyObject* at[kMaxInputs + kMaxAttrs] = {};
        const std::vector<ParamSpec>& params = called.spec.params;
        const bool fit = args.size() <= params.size() && (!args.size() || !params[args.size() - 1].keyword_only);
        for (size_t i = 0; fit && i < args.size(); ++i) at[i] = args[i].ptr();
        PyObject* const made = fit ? record_plain(recorder.ptr(), called, at) : nullptr;
        if (!made && PyErr_Occurred()) throw py::error_already_set();
        return made ? py::reinterpret_steal<py::object>(made) : py::none();
      },
      "The result of a call, by position, that the recorder of a function takes without Python code; None: of "
      "another call.");
  m.def(
      "recorder", []() -> py::object { return own ? py::reinterpret_borrow<py::object>(own) : py::none(); },
      "The recorder of this thread's trace, or None.");
  py::class_<RecordingOn>(
      m, "recording_on",
      "Within it, this thread's ops, operators and indexing go to the recorder of a trace; with "
      "None they run.")
      .def(py::init<py::object>())
      .def("__enter__", [](RecordingOn& r) { return r.enter(); })
      .def("__exit__", [](RecordingOn& r, const py::args& raised) { r.exit(raised); });
}
}  // namespace dovetail::bindings
