#include "bindings/engines.hpp"

#include <pybind11/stl.h>

namespace dovetail::bindings {
bool engines_chosen = false;

namespace {
// A context variable, so that threads and asyncio's tasks have their own. Its value is a tuple of choices, of which
// the last one applies.
PyObject* choices;

EngineChoice choose(const std::vector<std::string>& ops, const std::vector<std::string>& engines) {
  std::vector<const Op*> covered;
  for (const std::string& name : ops) covered.push_back(&op(name));
  EngineChoice choice(std::move(covered), engines);
  engines_chosen = true;
  return choice;
}
}  // namespace

void ContextEngines::enter() {
  PyObject* value = nullptr;
  if (PyContextVar_Get(choices, nullptr, &value) < 0) throw py::error_already_set();
  auto chosen = py::reinterpret_steal<py::object>(value);
  if (!chosen || !PyTuple_GET_SIZE(chosen.ptr())) return;
  const py::handle last = PyTuple_GET_ITEM(chosen.ptr(), PyTuple_GET_SIZE(chosen.ptr()) - 1);
  before_ = std::exchange(engine_choice, last.cast<const EngineChoice*>());
  held_ = chosen.release().ptr();
}

void ContextEngines::leave() {
  engine_choice = before_;
  Py_DECREF(held_);
}

void make_engines(py::module_& m) {
  py::class_<EngineChoice>(m, "EngineChoice", py::dynamic_attr(),
                           "The engines that may serve some ops; ValueError for unknown ones.");
  make_with_new(m.attr("EngineChoice"),
                py::cpp_function(choose, py::name("EngineChoice"), py::arg("ops"), py::arg("engines")));
  choices = PyContextVar_New("dovetail.engines", nullptr);
  if (!choices) throw py::error_already_set();
  m.attr("engine_choices") = py::handle(choices);
}
}  // namespace dovetail::bindings
