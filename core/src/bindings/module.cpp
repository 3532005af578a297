#include "bindings/array.hpp"

#ifndef DOVETAIL_VERSION
#error "DOVETAIL_VERSION comes from the build"
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

void let_go_of_the_gil() {
  interpreter.unlock = []() -> void* { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; };
  interpreter.relock = [](void* state) { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); };
}
}  // namespace
}  // namespace dovetail::bindings

PYBIND11_MODULE(_core, m) {
  using namespace dovetail::bindings;
  py::register_exception_translator(translate);
  dovetail::on_warning = warn;
  let_go_of_the_gil();
  m.attr("__version__") = DOVETAIL_VERSION;
  m.def("abi_version", [] { return py::make_tuple(DVT_ABI_MAJOR, DVT_ABI_MINOR, DVT_ABI_DRAFT); });
  make_dtypes(m);
  make_op_type(m);
  make_array_type(m);
  make_devices(m);
  make_streams(m);
  make_memory(m);
  make_registry(m);
  make_tracing(m);
  make_python_devices(m);
  make_interchange(m);
}
