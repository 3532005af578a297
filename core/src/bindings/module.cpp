#include <chrono>
#include <thread>

#include "bindings/array.hpp"
#include "bindings/autocast.hpp"

#ifndef DOVETAIL_VERSION
#error "DOVETAIL_VERSION is not defined: the build must set it"
#endif

namespace dovetail::bindings {
namespace {
void translate(std::exception_ptr p) {
  try {
    if (p) std::rethrow_exception(p);
  } catch (const Error&) {
    set_python_error();
  }
}

void warn(const std::string& text) {
  py::gil_scoped_acquire gil;
  lazy("_errors", "warn")(text);
}

PyObject* new_object(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  const auto make =
      py::reinterpret_steal<py::object>(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "_make"));
  if (make) return PyObject_Call(make.ptr(), args, kwargs);
  return PyErr_Format(PyExc_TypeError, "cannot create '%s' instances", type->tp_name);
}
int no_init(PyObject*, PyObject*, PyObject*) { return 0; }

struct KeyboardInterrupt : py::error_already_set, Interrupt {
  explicit KeyboardInterrupt(const py::error_already_set& raised) : py::error_already_set(raised) {}
};

void check_interrupt() {
  const py::gil_scoped_acquire gil;
  if (!PyErr_CheckSignals()) return;
  const py::error_already_set raised;
  if (raised.matches(PyExc_KeyboardInterrupt)) throw KeyboardInterrupt(raised);
  throw raised;  // by a signal handler of the user
}

void lend_the_gil() {
  interpreter.unlock = []() -> void* { return holds_gil() ? PyEval_SaveThread() : nullptr; };
  interpreter.relock = [](void* state) { take_gil(static_cast<PyThreadState*>(state)); };
  interpreter.check_interrupt = check_interrupt;
}
}  // namespace

// Not PyGILState_Check(), which answers 1 to every thread once the process has had a subinterpreter.
bool holds_gil() {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked();
#elif PY_VERSION_HEX >= 0x030C0000
  return _PyThreadState_UncheckedGet();
#else  // 3.11 returns the state of whichever thread holds the GIL
  PyThreadState* own = PyGILState_GetThisThreadState();
  return own && own == _PyThreadState_UncheckedGet();
#endif
}

// Python up to 3.13 ends a daemon thread here by unwinding its stack, which aborts the process at the first
// destructor. Python 3.14 stops the thread for good instead, and so does this function.
void take_gil(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

void make_with_new(py::handle type, py::object make) {
  auto* slots = reinterpret_cast<PyTypeObject*>(type.ptr());
  slots->tp_new = new_object;
  slots->tp_init = no_init;
  if (make) type.attr("_make") = std::move(make);
  PyType_Modified(slots);
}
}  // namespace dovetail::bindings

PYBIND11_MODULE(_core_of_main, m) {
  using namespace dovetail::bindings;
  check_installation();
  py::register_exception_translator(translate);
  dovetail::on_warning = warn;
  lend_the_gil();
  m.attr("__version__") = DOVETAIL_VERSION;
  m.def("abi_version", [] { return py::make_tuple(DVT_ABI_MAJOR, DVT_ABI_MINOR, DVT_ABI_DRAFT); });
  make_dtypes(m);
  make_op_type(m);
  make_array_type(m);
  make_devices(m);
  make_streams(m);
  make_memory(m);
  make_registry(m);
  make_toolchains(m);
  make_engines(m);
  make_autocast(m);
  make_random(m);
  make_tracing(m);
  make_recorder(m);
  make_programs(m);
  make_compiled_functions(m);
  make_profile(m);
  make_python_devices(m);
  make_interchange(m);
}

// pybind11 has a check of its own, but on Python 3.11 it first waits forever for its own lock.
extern "C" PYBIND11_EXPORT PyObject* PyInit__core() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return PyInit__core_of_main();
  PyErr_SetString(PyExc_ImportError,
                  "dovetail works in the main interpreter only: use threads or processes, not subinterpreters");
  return nullptr;
}
